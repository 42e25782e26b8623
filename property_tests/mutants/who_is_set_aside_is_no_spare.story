# who is set aside is no spare
# L9: no rest 9.00 s after fail, at most 8.2 s: round 1 complete [b:in a:aside]
world nodes=2 max=1 node_failures=1 window=30
start a
start b
pass 1
fail a
