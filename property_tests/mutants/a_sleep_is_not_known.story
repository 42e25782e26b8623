# a sleep is not known
# R14: a has slept, and decides before it has looked
world nodes=1 max=1
start a
pause a 10
