# a node that is to leave comes back
# O15: c#1 comes back after its failures, at [1.0039999999999996], and is to leave
world node_failures=1 leaves=1
start a
start b
start c
pass 1
kill-worker c
