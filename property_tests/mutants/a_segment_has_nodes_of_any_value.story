# a segment has nodes of any value
# S23: a join: a#1, b#1 are no segment of one rack
world nodes=4 min=2 max=4 unit=2 racks=2
start a
start b
pass 3
