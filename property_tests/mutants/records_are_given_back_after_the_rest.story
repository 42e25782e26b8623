# records are given back after the rest
# R15: job a@0 fails, and b knows a failure that is not on record
world nodes=2 min=2 max=2 restarts=0
start a
start b
pass 1
fail b
pass 0.0045
empty
pass 2
