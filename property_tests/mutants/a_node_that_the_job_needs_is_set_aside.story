# a node that the job needs is set aside
# V7: 0 dropped, 0 set aside and 0 called back, but the target went from 1 to 2
world nodes=1 max=1 node_failures=1
start-next a
pass 1
fail a
