# a node counts the failures of others
# L2: b has found no world, but all has been well for long
world nodes=4 min=4 max=4 node_failures=1 leaves=1
start a
start b
start c
start d
pass 1
kill-worker c
