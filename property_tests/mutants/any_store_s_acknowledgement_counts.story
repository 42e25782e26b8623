# any store's acknowledgement counts
# L18: a#1 takes the acknowledgement of None, or leaves its own one
world nodes=1 max=1 seed=1
start a
pass 1
older 1
