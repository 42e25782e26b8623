# overdue at once
# S9 strong: workers of c#1 still run in round 1 while those of a#1 start in 2
world min=2 seed=2346917498 last_call=0 fence=3
start a
start b
start c
