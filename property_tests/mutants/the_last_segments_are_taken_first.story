# the last segments are taken first
# V23: a#1, c#1 ran in the last world and wait, and others have taken their places
world nodes=4 min=2 max=2 unit=2 racks=2
start a
start c
pass 3
start b
start d
pass 1
fail a
pass 5
