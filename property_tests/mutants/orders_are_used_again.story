# orders are used again
# S5: a join: order 0 is not below the next one, 0
world nodes=1 max=1
