# in stays in at a restore
# R7: a join: a#1 is in, which nobody can attest
world nodes=2 min=2 max=2
start a
pass 1
empty
