# a node leaves a failure too early
# O2: a#1 leaves as unfit, and neither failed nor was lost too often
world nodes=1 max=1 node_failures=2 leaves=1
start a
pass 1
kill-worker a
