# join finishes with the round just run
# S17: the workers of b#1 start twice in round 0
world nodes=2 min=2 max=2 fence=3
start a
start b
slow b 0.6
pass 10
