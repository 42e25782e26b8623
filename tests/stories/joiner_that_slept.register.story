# b slept past the deadline of its join. Meanwhile it was thrown out, and the others wait for a third node: b looks before it gives
# up, and goes on in the world that its return completes.
job 3 join_timeout=600

a b join
time 590
b is silent
c joins
time 596
a c join
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
590  c writes 3: round 0 complete: a in, b in, c in
590  a join: round 0 of a, b, c
590  c join: round 0 of a, b, c
595  a writes 4: round 1 open: a expected, c expected; target 2; round 0 ended: lost, by a
595  a watch: round 0 is over; round 0 ended: lost, by a
595  c watch: round 0 is over; round 0 ended: lost, by a
596  a writes 5: round 1 open: a in, c expected; target 2; round 0 ended: lost, by a
596  c writes 5: refused, the register is at 5
596  c writes 6: round 1 open: a in, c in; target 2; round 0 ended: lost, by a
6: round 1 open: a in, c in; target 2; round 0 ended: lost, by a

time 700
b slept
----
700  b writes 7: round 1 complete: a in, c in, b in; round 0 ended: lost, by a
700  c join: round 1 of a, c, b
700  a join: round 1 of a, c, b
700  b join: round 1 of a, c, b
