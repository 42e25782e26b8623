# heartbeats are read twice as often
# O19: a#1 watch waits until 0.506, and something is due at 1.006 (now 0.008)
world nodes=2 max=2
start a
start b
pass 12
