# The last call belongs to a quorum. When the minimum is lost, it is called off; when it is reached again, it starts again.
job 2:3

a b join
time 3.0
b leaves
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
3  b writes 3: round 0 open: a in
3  b leave: settled

time 4.0
c joins
time 8.9
----
4  c writes 4: round 0 open: a in, c in

time 9.0
----
9  a writes 5: round 0 complete: a in, c in
9  c join: round 0 of a, c
9  a join: round 0 of a, c
