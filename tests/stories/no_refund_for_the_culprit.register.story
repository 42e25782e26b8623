# a's own workers failed, and then its agent died. Its death is no excuse for its failure.
job 1:2 restarts=1

a b join
a's workers fail
b joins
a is silent
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
0  b watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled
0  b writes 4: round 1 open: a expected, b in; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a

time 9.0
----
5  b writes 5: round 1 complete: b in; 1 of 1 restarts spent; round 0 ended: failed, by a
5  b join: round 1 of b
