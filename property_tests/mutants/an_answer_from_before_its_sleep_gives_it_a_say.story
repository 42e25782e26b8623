# an answer from before its sleep gives it a say
# R14: a has slept, and decides before it has looked
world nodes=1 max=1
start a
pause a 10
