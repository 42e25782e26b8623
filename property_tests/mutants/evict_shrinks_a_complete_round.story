# evict shrinks a complete round
# S4: b watch: a world of 1 nodes, outside 2 to 2
world nodes=2 min=2 max=2 seed=2
start a
start b
pass 0.02
