# a spare has an end
# O19: b#1 join waits until 15, and something is due at 15.006 (now 14.008)
world nodes=2 max=1 join=15
start a
start b
pass 30
