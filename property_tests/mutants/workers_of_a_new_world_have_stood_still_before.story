# workers of a new world have stood still before
# L19: b#1 is fed Shown, and remembers otherwise: still_since: 1.0, not None
world nodes=2 max=2
start a
start b
pause-heart a 10
pass 1
hang b
