# The backup that was put back is older than what everybody holds, who all are there: it is replaced at once, and nobody's
# workers are stopped.
job 2 restarts=1

a b join
b's workers fail
a b join
the store is older 3
show register
show a
show b
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by b
0  b writes 4: refused, the register is at 4
0  b writes 5: round 1 complete: a in, b in; 1 of 1 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
0  a restores 4: life 2, round 1 complete: a in, b in; 1 of 1 restarts spent; round 0 ended: failed, by b
4: life 2, round 1 complete: a in, b in; 1 of 1 restarts spent; round 0 ended: failed, by b
a watch, until 1 at most · round 1: 2 nodes running
b watch, until 1 at most · round 1: 2 nodes running
