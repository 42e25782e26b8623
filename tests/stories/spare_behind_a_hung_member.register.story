# All members of the last world hang on their way back, with their agents alive. A spare has nobody before it who could say
# that they are overdue, so it may say so itself, and takes over.
job 1:1 restarts=1

a b join
a's workers fail
----
0  a writes 1: round 0 complete: a in
0  b writes 2: round 0 complete: a in, b waiting
0  a join: round 0 of a
0  a writes 3: round 1 open: a expected, b waiting; target 1; 1 of 1 restarts spent; round 0 ended: failed, by a
0  a end: settled

time 1000
show b
show register
----
45.9  b writes 4: round 1 complete: b in; 1 of 1 restarts spent; round 0 ended: failed, by a
45.9  b join: round 1 of b
b watch, until inf at most · round 1: 1 node running
4: round 1 complete: b in; 1 of 1 restarts spent; round 0 ended: failed, by a
