# Found by R12, two nodes with a fence (run 20 of seed 21): a was not told of a change, and was about to look by itself, when the store lost its memory.
# Until it looked, no heartbeat of it counted, so its fence fell. The judge took it for well.
world nodes=2 max=1 fence=3
start a
gap a
pass 0.1
older 1
pass 1
start b
gap a
pass 0.1
older 1
pass 2
