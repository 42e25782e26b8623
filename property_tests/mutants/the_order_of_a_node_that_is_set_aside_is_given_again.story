# the order of a node that is set aside is given again
# S5: b join: order 2 is not below the next one, 2
world nodes=2 max=1 seed=2 node_failures=1
start a
start b
pass 1
fail b
