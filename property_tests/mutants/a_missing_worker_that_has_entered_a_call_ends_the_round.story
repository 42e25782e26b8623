# a missing worker that has entered a call ends the round
# B5: c#1 ends a round as failed, in which none of its workers failed
world nodes=6 min=4 max=5 seed=1791765068 unlike=3 links=1 alone=2 codes=1 echoes=1
start a
start b
start c
start e
pass 0.01
pause a 10
pass 2.5
fail c
