# an old write lands in a store that is empty
# S7: version 2 after 0
world nodes=2 max=1 seed=4
start a
start b
pass 0.01
older 1
