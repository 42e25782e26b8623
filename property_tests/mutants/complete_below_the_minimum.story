# complete below the minimum
# S4: a join: a world of 5 nodes, outside 6 to 6
world nodes=6 min=6 max=6 seed=3464988097 drift=0.01
start d
pass 1
drain d
