# a world has any number of nodes
# S22: a join: a world of 4 nodes, which are no whole units of 3
world nodes=6 min=3 max=6 unit=3
start a
start b
start c
start d
