# nobody is called back
# V18: b join: b#1 are set aside, and the others are too few
world nodes=2 max=1 node_failures=1
start b
pass 1
start a
fail b
pass 1
crash a
