# a's end landed, the reply was lost. a reads before it decides again, and finds that all is said: one restart, not two.
job 2 restarts=1

a b join
lose the reply of a's next write
a's workers fail
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a (it lands, the reply is lost)
0  b watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled

show register
----
3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
