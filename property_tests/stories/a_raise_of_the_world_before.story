# Found by B5, five nodes (run 968 of seed 21): a worker of d raised in round 0, lived on into round 1, and ended there with 0. The judge counted the
# failure to round 0 alone.
world nodes=5 max=5 workers=2 seed=7 alone=1 enters=0 codes=1 echoes=1 standbys=3
start a
start b
start c
start d
start e
pass 1
fail b
drain b
