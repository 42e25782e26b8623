# Found by R14, two nodes (run 1139 of its seed): a slept, and its waiter too. When it woke it looked, and the store was empty. The waiter's push from
# before the sleep, kept until that answer, was then taken for the register, and restored.
world nodes=2 max=1
start a
start b
pass 1
pause-waiter a 10
start b
pass 6
pause b 10
pause a 7
empty
