# a sleep leaves an operation the rest of its time
# L7: a#1 has waited for 0 s, awake and no spare, and gives up
world nodes=1 max=1
start a
pause a 70
