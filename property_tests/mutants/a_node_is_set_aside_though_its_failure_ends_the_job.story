# a node is set aside though its failure ends the job
# V19: b join: d#1 is set aside without a cause, too soon, or though the job needs it
world nodes=4 max=2 node_failures=1
start a
start b
start c
start d
pass 1
fail b
pass 10
fail a
pass 1
fail c
pass 1
fail d
