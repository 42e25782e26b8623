# the last resort is SIGTERM
# S9 strong: workers of b#1 still run in round 0 while those of a#1 start in 1
world nodes=2 max=2 seed=4 last_call=0 fence=3
start a
start b
pass 1
hang b
pass 5
