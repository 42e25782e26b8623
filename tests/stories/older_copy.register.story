# A backup of the store was put back while nobody was there who knew more. It is a copy: a newcomer that held nothing first
# makes it a life of its own, and then waits for those that it names.
job 2 restarts=3 overdue_timeout=20

a b join
b's workers fail
a b join
a is silent
b is silent
the store is older 2
c joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  b writes 4: refused, the register is at 4
0  b writes 5: round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
0  c restores 3: life 2, round 0 complete: a in, b in
0  c writes 4: life 2, round 0 complete: a in, b in, c waiting

# Those who knew more come back: round 1 was completed before, and counts more than a copy of round 0.
a is back
b is back
show register
show c
----
0  a restores 5: life 3, round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
0  c writes 6: life 3, round 1 complete: a in, b in, c waiting; 1 of 3 restarts spent; round 0 ended: failed, by b
6: life 3, round 1 complete: a in, b in, c waiting; 1 of 3 restarts spent; round 0 ended: failed, by b
c join, until 1 at most · round 1: spare, 2 of 2 seats are taken
