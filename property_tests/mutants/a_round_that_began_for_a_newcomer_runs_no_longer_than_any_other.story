# a round that began for a newcomer runs no longer than any other
# O4: a#1 ends the round for a newcomer, and it began for another one less than 4 s ago
world nodes=4 max=4 last_call=0
start a
start b
pass 2
start c
