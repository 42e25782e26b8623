# a reserve is one in another life's round too
# S14b: b#1 is a reserve in round 1, in which its workers have work
world nodes=4 min=1 max=4 reserves=1
start a
start b
pass 5
fail a
pass 5
pause a 4.5
pause b 4
empty
pass 0.01
start c
pass 20
