# done members are no members
# S4: a done: a world of 0 nodes, outside 1 to 1
world nodes=1 max=1
