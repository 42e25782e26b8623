# waiting nodes are expected at an end
# V7: a watch: the next round waits for 2 nodes, 1 can come back
world nodes=2 max=2 last_call=0
start a
start b
