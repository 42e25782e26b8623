# A node that ends is dead before the world is looked at: a rest of the others without it would count from the eviction.
world nodes=2 max=2 interval=20
start a
start b
pass 1
notice b 1
outage 2
pass 180
