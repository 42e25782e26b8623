# dead waiting nodes stay
# S4: a watch: a world of 2 nodes, outside 1 to 1
world nodes=2 max=1
start a
start b
pass 1
crash b
pass 10
