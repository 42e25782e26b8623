# who is set aside comes back at once
# O9: b#1 comes back 0 s after it was set aside, too soon
world nodes=2 max=1 seed=2 node_failures=1
start a
start b
pass 1
fail b
