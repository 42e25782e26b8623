# the store was silent while its node slept
# L7: a#1 has waited for 0 s, awake and no spare, and gives up
world nodes=1 max=1 join=15
start a
outage 10
pass 10
pause a 7
