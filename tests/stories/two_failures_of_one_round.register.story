# Both nodes' workers fail in one round, at the same time, as they do when a collective breaks. Whoever is first ends the round;
# the other's write is refused, and then there is nothing left to say: one restart.
job 2 restarts=3

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a b's workers fail
----
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by a
0  b writes 3: refused, the register is at 3
0  a end: settled
0  b end: settled

show register
----
3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by a
