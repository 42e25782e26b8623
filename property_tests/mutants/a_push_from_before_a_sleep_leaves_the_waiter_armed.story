# a push from before a sleep leaves the waiter armed
# L11: b waits, and nothing waits for the next change
world nodes=2 max=1 seed=2
start a
start a
start b
pass 1
pause b 10
