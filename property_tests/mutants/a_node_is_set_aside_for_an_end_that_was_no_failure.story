# a node is set aside for an end that was no failure
# V19: c join: c#1 is set aside without a cause, too soon, or though the job needs it
world min=2 seed=3 node_failures=1
start a
start b
start c
cut-out a 5
pass 5
fail c
