# a complete world is expected back at a restore
# S4: a watch: a world of 0 nodes, outside 1 to 1
world nodes=1 max=1
start a
pass 1
empty
