# a mark that the store forgot is not made again
# L2: after 105 s without faults: nobody lives; round 0 complete [a:done b:in]
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
