# end forgets the target
# V7: a watch: the next round waits for 0 nodes, 1 can come back
world nodes=2 max=2
start b
pass 1
crash b
