# no round grows old
# O19: b#2 watch waits until 12.004, and something is due at 11.908 (now 11.006)
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 3
