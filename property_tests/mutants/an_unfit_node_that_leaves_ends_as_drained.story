# an unfit node that leaves ends as drained
# O1: c#1 ends without cause: Drained(source='it was the first cause of 1 failures within 8 s')
world node_failures=1 leaves=1
start a
start b
start c
pass 1
kill-worker c
