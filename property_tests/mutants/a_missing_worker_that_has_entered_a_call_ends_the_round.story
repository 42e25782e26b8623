# a missing worker that has entered a call ends the round
# B5: b#1 ends a round as failed, in which none of its workers failed
world workers=2 seed=3678033676 links=1 alone=1 echoes=1
start a
start b
start c
pass 1
cut-in c 5
pass 2.5
crash a
empty
