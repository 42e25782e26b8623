# a node that joins sleeps past the time of the expected
# O19: b#1 join waits until 10.006, and something is due at 9.904 (now 9.008)
world nodes=2 max=2
start a
start b
pass 1
fail b
pause-loop a 10
