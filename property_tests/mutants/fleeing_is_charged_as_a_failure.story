# fleeing is charged as a failure
# B5: a#1 ends a round as failed, in which none of its workers failed
world nodes=1 max=1 seed=2 drift=0.0001 fence=3
start a
cut-out a 1
pass 1
