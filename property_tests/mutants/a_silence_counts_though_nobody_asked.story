# a silence counts though nobody asked
# L7: b#1 is a spare, and gives up
world nodes=2 max=1 join=15
start a
start b
pass 1
outage 10
pass 7.5
pause-loop b 10
