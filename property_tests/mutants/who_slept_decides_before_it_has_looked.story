# who slept decides before it has looked
# R14: a has slept, and decides before it has looked
world nodes=1 max=1
start a
pass 1
pause a 10
