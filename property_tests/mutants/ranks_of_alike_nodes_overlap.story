# ranks of alike nodes overlap
# S3: worker 0 of b#1 has rank 1, not 2
world nodes=2 min=2 max=2 workers=2
