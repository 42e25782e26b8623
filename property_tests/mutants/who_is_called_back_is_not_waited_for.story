# who is called back is not waited for
# V7: b join: the next round waits for 0 nodes, 1 can come back
world nodes=2 max=1 node_failures=1
start b
pass 1
start a
fail b
pass 1
crash a
