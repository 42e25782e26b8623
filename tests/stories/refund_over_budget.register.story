# As in refund, but the failure was one too many. Had the job been closed at once, a death would have been charged as a failure.
job 1:2 restarts=0

a b join
b is silent
a's workers fail
a joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a
0  a end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a

show a
----
a join, until 1 at most · round 1: waiting for 1 of 2 nodes · here: a · expected back: b

time 9.0
----
5  a writes 5: round 1 complete: a in; round 0 ended: lost, by a
5  a join: round 1 of a
