# no fence
# S9 strong: workers of b#1 still run in round 0 while those of a#1 start in 1
world nodes=2 max=2 fence=3
start a
start b
pass 1
cut-out b 5
pass 10
