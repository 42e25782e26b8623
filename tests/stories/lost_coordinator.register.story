# The coordinator itself falls silent. Everybody else reads its heartbeat; after half a TTL they read all; after a TTL the
# next one acts, at once.
job 2:3

a b c join
a is silent
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c

time 9.0
----
5  b writes 4: round 1 open: b expected, c expected; target 2; round 0 ended: lost, by b
5  b watch: round 0 is over; round 0 ended: lost, by b
5  c watch: round 0 is over; round 0 ended: lost, by b

b c join
----
9  b writes 5: round 1 open: b in, c expected; target 2; round 0 ended: lost, by b
9  c writes 5: refused, the register is at 5
9  c writes 6: round 1 complete: b in, c in; round 0 ended: lost, by b
9  c join: round 1 of b, c
9  b join: round 1 of b, c
