# an open round has no room for a whole segment
# V4: c join: c#1 wait while there is room for 0
world nodes=4 min=2 max=2 unit=2 racks=2
start a
start b
start c
pass 1
