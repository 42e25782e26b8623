# only the last world is remembered as run
# S17: the workers of a#1 start twice in round 0
world nodes=1 max=1
start a
pass 1
pause a 7
pass 5
empty
pass 5
older 5
