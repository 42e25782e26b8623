# reaped with the first exit
# S9: workers of a#1 still run in round 0 while those of b#1 start in 1
world nodes=2 max=2 workers=2 seed=1 last_call=0
start a
start b
