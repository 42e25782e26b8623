# a newcomer ends the round of a drained member
# O4: c#1 ends the round for a newcomer, though a drained node is at work in it
world nodes=5 max=2 seed=3 last_call=0
start a
start b
start c
start d
start e
pass 1
notice c 5
