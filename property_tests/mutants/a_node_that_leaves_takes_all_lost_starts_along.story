# a node that leaves takes all lost starts along
# B8: [] are remembered as lost after Leave() of d#8
world nodes=6 min=4 max=4 node_failures=1 leaves=1
start d
start e
pass 1
kill e 1
kill d 1
