# evict shrinks a complete round
# S4: a#2 join: a world of 0 nodes, outside 1 to 1
world nodes=1 max=1
start a
pass 1
crash a
