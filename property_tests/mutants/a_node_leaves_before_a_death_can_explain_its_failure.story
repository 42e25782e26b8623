# a node leaves before a death can explain its failure
# O15: c#1 leaves for its failures, at [1.0039999999999996], without a cause or too soon
world node_failures=1 leaves=1
start a
start b
start c
pass 1
kill-worker c
