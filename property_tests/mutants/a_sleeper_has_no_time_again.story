# a sleeper has no time again
# L7: a#1 has waited for 0 s, awake and no spare, and gives up
world nodes=1 max=1 join=15
start a
pause a 30
