# a world has its minimum of nodes
# V22: b join: complete with 1 nodes, and 1 wait that would make it larger
world nodes=2 max=2
start a
start b
