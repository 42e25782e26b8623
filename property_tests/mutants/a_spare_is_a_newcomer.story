# a spare is a newcomer
# O4: a#1 ends the round for newcomers that make no unit
world nodes=2 max=1
start a
start b
