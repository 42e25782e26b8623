# a node that is set aside is still waited for
# V7: 0 dropped, 1 set aside and 0 called back, but the target went from 2 to 2
world nodes=2 max=2 node_failures=1
start a
start b
pass 1
fail b
