# a node is set aside for an end that was no failure
# V19: a join: a#1 is set aside without a cause, too soon, or though the job needs it
world min=2 node_failures=1
start a
start b
start c
pass 1
fail b
pass 1
fail a
