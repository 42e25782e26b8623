# a node that is set aside keeps its place
# S5: b join: orders are not unique and sorted: [1, 0]
world nodes=2 max=1 seed=2 node_failures=1
start a
start b
pass 1
fail b
