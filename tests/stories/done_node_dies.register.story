# A node whose workers have succeeded may die: its work is done, and the others finish theirs.
job 2

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a's workers succeed
a is silent
----
0  a writes 3: round 0 complete: a done, b in
0  a done: settled

time 9.0
show register
----
5  b writes 4: round 0 complete: a gone, b in
4: round 0 complete: a gone, b in

b's workers succeed
----
9  b writes 5: round 0 complete: a gone, b done; closed SUCCEEDED in round 0: done, by b
9  b done: closed SUCCEEDED in round 0: done, by b
