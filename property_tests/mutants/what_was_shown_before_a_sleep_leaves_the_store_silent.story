# what was shown before a sleep leaves the store silent
# L7: b#1 is a spare, and gives up
world max=1 join=15
start a
start b
pass 1
crash a
pause b 7
pass 6
cut-out b 30
pass 5
start c
pass 30
