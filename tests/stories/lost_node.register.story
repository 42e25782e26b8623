# A member of the running round falls silent. A TTL later the coordinator evicts it, which is the end of the round in the same
# write: a complete round never shrinks.
job 1:2

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

time 2.5
b is silent
time 9.0
----
7  a writes 3: round 1 open: a expected; target 1; round 0 ended: lost, by a
7  a watch: round 0 is over; round 0 ended: lost, by a

a joins
----
9  a writes 4: round 1 complete: a in; round 0 ended: lost, by a
9  a join: round 1 of a
