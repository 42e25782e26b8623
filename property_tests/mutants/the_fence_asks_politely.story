# the fence asks politely
# S9 strong: workers of a#1 still run in round 0 while those of b#1 start in 1
world nodes=2 max=1 backend=lease fence=3
start a
pass 1
start b
hang a
cut a 5
pass 5
