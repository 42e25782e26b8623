# no world is remembered as run
# S17: the workers of a#1 start twice in round 0
world nodes=1 max=1 fence=3
start a
pass 1
cut-in a 1
pass 5
