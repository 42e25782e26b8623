# proposals survive an end, and a bump
# S9: workers of a#1 still run in round 1 while those of b#1 start in 2
world nodes=2 max=2 seed=1 helping=1
start a
start b
pass 2
fail b
pass 1
fail b
