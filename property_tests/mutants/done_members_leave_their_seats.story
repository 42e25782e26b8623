# done members leave their seats
# S4: a leave: a world of 1 nodes, outside 2 to 2
world nodes=2 min=2 max=2
start a
start b
pass 1
succeed a
drain a
