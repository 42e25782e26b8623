# A worker fails in one world, and goes on record in the next one of its generation (G9).
world nodes=2 max=2 seed=2 alone=2 echoes=1
start a
start b
pass 2
start a
fail b
