# who is set aside never comes back
# L2: after 121 s without faults: b (joining); round 1 complete [a:in b:aside]
world nodes=2 max=2 node_failures=1
start a
start b
pass 1
fail b
