# the barrier's time-out is for all
# S9 strong: workers of a#1 still run in round 0 while those of b#1 start in 1
world nodes=2 max=1 seed=1 barrier=2 fence=3
start a
start b
pass 5
