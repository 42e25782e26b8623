# gone nodes do no chores
# O19: a#1 watch waits until 10.004, and something is due at 9.006 (now 9.006)
world nodes=6 max=2 barrier=2
start f
pass 1
crash f
