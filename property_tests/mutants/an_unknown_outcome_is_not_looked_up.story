# an unknown outcome is not looked up
# R14: a has slept, and decides before it has looked
world nodes=1 max=1 attempts=3
start a
pause a 5
