# a round ends for a part of a segment
# O4: a#1 ends the round for newcomers that make no unit
world nodes=4 min=2 max=4 unit=2 racks=2
start a
start c
pass 3
start b
pass 3
