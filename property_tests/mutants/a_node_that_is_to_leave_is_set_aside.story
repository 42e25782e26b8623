# a node that is to leave is set aside
# O15: a#1 tells Failing(failures=1, cooldown_s=8.0), and has failed 1 times within 8 s: []
world nodes=1 max=1 node_failures=1 leaves=1
start a
pass 1
fail a
