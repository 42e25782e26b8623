# a success counts in another life's round too
# S14b: a#1 is done in round 1, in which its workers have not succeeded
world nodes=4 min=1 max=4
start a
start b
pass 5
fail a
pass 5
succeed a
pass 0.5
pause a 4.5
pause b 4
empty
pass 0.01
start c
pass 20
