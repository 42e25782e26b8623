# newcomers fill the job that has room for one more
# O4: a#1 ends the round for a newcomer, and it began for another one less than 4 s ago
world nodes=6 max=6 last_call=0
start a
start b
start c
start d
pass 2
start e
