# a success of an earlier round counts
# S14b: a#1 is done in round 1, in which its workers have not succeeded
world nodes=2 min=2 max=2 alone=1 restarts=3
start a
start b
pass 5
succeed a
pass 1
fail b
fail b
pass 5
fail a
fail a
