# A newcomer takes no seat of a member that is on its way back: every member of the last world is expected first.
job 2 restarts=1

a b join
c joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  c writes 3: round 0 complete: a in, b in, c waiting

a's workers fail
a joins
show c
----
0  a writes 4: round 1 open: a expected, b expected, c waiting; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
0  b watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled
0  a writes 5: round 1 open: a in, b expected, c waiting; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
c join, until 1 at most · round 1: spare, 2 of 2 seats are taken

b joins
----
0  b writes 5: refused, the register is at 5
0  b writes 6: round 1 complete: a in, b in, c waiting; 1 of 1 restarts spent; round 0 ended: failed, by a
0  a join: round 1 of a, b
0  b join: round 1 of a, b
