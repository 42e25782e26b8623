# a node does not count the failure that it has
# O15: b#1 tells Failing(failures=1, cooldown_s=8.0), and has failed 2 times within 8 s: [1.0039999999999996]
world nodes=2 min=2 max=2 node_failures=1
start a
start b
pass 1
fail b
pass 1
kill-worker b
