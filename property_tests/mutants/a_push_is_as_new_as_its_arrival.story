# a push is as new as its arrival
# R14: a has slept, and decides before it has looked
world nodes=2 max=1
start a
pass 1
pause a 10
start b
