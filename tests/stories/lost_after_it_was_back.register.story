# All who can come are back, and yet there is a last call: c died after it had come back, and the target does not go down for
# one that was in, only for one that is expected. The last call begins with the quorum, so it may be over already.
job 3:4 restarts=1

a b c d join
a's workers fail
a c join
c is silent
time 6.0
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 open: a in, b in, c in
0  d writes 4: round 0 complete: a in, b in, c in, d in
0  d join: round 0 of a, b, c, d
0  a join: round 0 of a, b, c, d
0  b join: round 0 of a, b, c, d
0  c join: round 0 of a, b, c, d
0  a writes 5: round 1 open: a expected, b expected, c expected, d expected; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a
0  b watch: round 0 is over; round 0 ended: failed, by a
0  c watch: round 0 is over; round 0 ended: failed, by a
0  d watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled
0  a writes 6: round 1 open: a in, b expected, c expected, d expected; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a
0  c writes 6: refused, the register is at 6
0  c writes 7: round 1 open: a in, b expected, c in, d expected; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a
5  a writes 8: round 1 open: a in, b expected, d expected; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a

b joins
d joins
show d
----
6  b writes 6: refused, the register is at 8
6  b writes 9: round 1 open: a in, b in, d expected; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a
6  d writes 6: refused, the register is at 9
6  d writes 10: round 1 open: a in, b in, d in; target 4; 1 of 1 restarts spent; round 0 ended: failed, by a
d join, until 7 at most · round 1: last call, 3 of up to 4 nodes · here: a, b, d · lost: c

time 20.0
----
11  a writes 11: round 1 complete: a in, b in, d in; 1 of 1 restarts spent; round 0 ended: failed, by a
11  b join: round 1 of a, b, d
11  d join: round 1 of a, b, d
11  a join: round 1 of a, b, d
