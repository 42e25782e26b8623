# a mark that the store forgot is not made again
# O19: b#1 watch waits until 56611.4, and something is due at 56610.4 (now 56610.4)
world nodes=2 min=2 max=2 seed=1
start a
start b
pass 5
pause-waiter b 3
succeed a
pass 0.1
cut a 3
empty
pass 3
