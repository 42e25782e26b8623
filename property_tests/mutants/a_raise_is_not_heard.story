# a raise is not heard
# S14b: b#1 is done in round 0, in which its workers have not succeeded
world nodes=2 max=2 seed=22 last_call=0.5 echoes=1
start a
start b
pass 3
fail b
pass 9
