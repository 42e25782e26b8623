# a stopped its own workers because the store did not acknowledge its heartbeat, and comes back to find that its round still
# stands: it ends that round, because its workers do not run any longer. Nothing is charged.
job 2

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a joins
----
0  a writes 3: round 1 open: a expected, b expected; target 2; round 0 ended: fenced, by a
0  b watch: round 0 is over; round 0 ended: fenced, by a
0  a writes 4: round 1 open: a in, b expected; target 2; round 0 ended: fenced, by a
