# a round ends for a part of a unit
# O4: a#1 ends the round for newcomers that make no unit
world nodes=6 min=3 max=6 unit=3
start a
start b
start c
start d
