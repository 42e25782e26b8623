# Found by seeds, run 2996 of `elastic simulate --nodes 4 --seed 0x0c3856c7` (R12): an agent of another version was the first to write
# into the store that had lost its memory, and no survivor could read that. The law asked for the world that ran.
world min=2 seed=2
start a
start b
pass 5
start-next b
older 5
