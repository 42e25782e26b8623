# nobody is evicted while workers run
# O19: a#1 watch waits until 8.004, and something is due at 7.006 (now 7.006)
world nodes=2 max=2
start b
pass 1
crash b
