# who is set aside never comes back
# O19: b#1 join waits until 10.006, and something is due at 9.01 (now 9.01)
world nodes=2 max=2 node_failures=1
start a
start b
pass 1
fail b
