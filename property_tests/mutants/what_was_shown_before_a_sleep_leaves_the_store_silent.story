# what was shown before a sleep leaves the store silent
# L19: b#1 is fed Pushed, and remembers otherwise: silent_since: 10.0, not None
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
