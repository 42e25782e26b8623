# a node within its limit is set aside
# V17: a join: set aside, and nothing says for how long: a#1
world nodes=2 max=1 node_failures=2
start a
start b
pass 1
fail a
