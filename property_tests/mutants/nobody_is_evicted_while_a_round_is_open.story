# nobody is evicted while a round is open
# O19: a#1 join waits until 8.004, and something is due at 7.006 (now 7.006)
world max=1
start b
pass 1
crash b
