# a world's identity is that of the life it stands in
# S9: workers of b#1 still run in round 0 while those of a#1 start in 0
world nodes=2 max=2 seed=1
start a
start b
pass 1
older 1
