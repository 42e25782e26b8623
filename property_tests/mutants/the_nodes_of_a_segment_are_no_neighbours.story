# the nodes of a segment are no neighbours
# S23: d join: a#1, b#1 are no segment of one rack
world nodes=4 min=2 max=4 unit=2 racks=2
start a
start b
start c
start d
pass 1
