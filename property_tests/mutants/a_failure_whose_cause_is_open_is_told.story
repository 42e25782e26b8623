# a failure whose cause is open is told
# O15: b#1 tells Failing(failures=1, cooldown_s=8.0) of its failures, and the cause of this one is open
world nodes=2 max=2 node_failures=1 reserves=2 echoes=1
start a
start b
pass 1
crash a
