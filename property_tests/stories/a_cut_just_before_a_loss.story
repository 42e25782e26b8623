# Found by seeds, run 3242 of `elastic simulate --nodes 4 --seed 0x0c3856c7` (R12): the law held a node for well whose heartbeat had just
# been cut off, and which the fence stopped for that. The store's loss had no part in it.
world nodes=1 max=1 fence=3
start a
pass 0.1
cut-in a 1
pass 1
older 1
pass 2
