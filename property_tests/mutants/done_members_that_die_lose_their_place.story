# done members that die lose their place
# S1: a#2 join: the world of round 0 changed from a#1, b#1 to b#1
world nodes=2 max=2
start a
start b
pass 1
succeed a
start a
