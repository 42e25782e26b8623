# a waiter is armed twice
# L11: a waits for the next change twice at once
world nodes=2 max=2 seed=1
