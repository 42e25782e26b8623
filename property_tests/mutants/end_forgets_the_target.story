# end forgets the target
# V7: b watch: the next round waits for 0 nodes, 1 can come back
world nodes=2 max=2 seed=2
start a
start b
pass 0.02
