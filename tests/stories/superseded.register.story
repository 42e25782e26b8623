# The agent of slot a is started again on its host while the old one is still seated. The later start replaces the earlier: it
# need not wait for a TTL.
job 2

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a#2 joins
----
0  a#2 writes 3: round 1 open: b expected, a#2 in; target 1; round 0 ended: lost, by a#2
0  a watch: round 0 is over; round 0 ended: lost, by a#2
0  b watch: round 0 is over; round 0 ended: lost, by a#2

b joins
----
0  b writes 4: round 1 complete: b in, a#2 in; round 0 ended: lost, by a#2
0  a#2 join: round 1 of b, a#2
0  b join: round 1 of b, a#2

# The old one, if it still lives, is told.
a joins
----
0  a join fails (superseded): a later start of a has taken its seat
