# under a lease none is as good as one
# L3: a throws out b, whose heartbeats came in time
world backend=lease
start a
start b
start c
