# proposals survive an end
# S9: workers of a#1 still run in round 1 while those of c#1 start in 2
world seed=2 last_call=0.5 helping=1
start a
start b
late-reply b 1.5
start c
pass 5
start b
