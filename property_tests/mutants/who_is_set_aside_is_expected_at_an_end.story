# who is set aside is expected at an end
# V20: a leave: who is set aside no longer is still charged with its failures
world nodes=2 max=1 seed=2 node_failures=1
start a
start b
pass 1
fail b
pass 1
drain a
