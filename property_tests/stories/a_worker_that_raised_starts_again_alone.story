# A worker that raised and started again alone ends well: its first report is not held against it (S14b).
world nodes=4 seed=1 alone=2 echoes=1
start a
start b
start c
start d
pass 1
fail b
