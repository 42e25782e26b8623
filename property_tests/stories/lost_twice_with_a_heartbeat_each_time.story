# Found by R12 in a soak: the store lost its memory twice, each time just as a heartbeat of a came. Neither counted, and a's fence fell.
world nodes=2 max=1 seed=4 fence=3
start a
start b
pass 1.04
older 1
pass 1
older 5
