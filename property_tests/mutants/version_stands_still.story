# version stands still
# S7: a join: version 0 after 0
world nodes=1 max=1
