# who is set aside is called back without need
# V3: b join: 2 seats for at most 1 nodes
world nodes=2 max=1 seed=2 node_failures=1
start a
start b
pass 1
fail b
