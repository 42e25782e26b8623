# a node that leaves keeps its lost starts
# B8: ['a#1'] are remembered as lost after Leave() of a#9
world nodes=2 min=2 max=2 node_failures=1 leaves=1
start a
pass 1
kill a 1
