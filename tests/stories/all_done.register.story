# The job has succeeded when the workers of all members have; the last one's own write says so.
job 3

a b c join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c

b's workers succeed
a's workers succeed
show c
----
0  b writes 4: round 0 complete: a in, b done, c in
0  b done: settled
0  a writes 5: round 0 complete: a done, b done, c in
0  a done: settled
c watch, until 1 at most · round 0: 2 of 3 nodes done · waiting for c

c's workers succeed
----
0  c writes 6: round 0 complete: a done, b done, c done; closed SUCCEEDED in round 0: done, by c
0  a watch: closed SUCCEEDED in round 0: done, by c
0  b watch: closed SUCCEEDED in round 0: done, by c
0  c done: closed SUCCEEDED in round 0: done, by c

# A late agent is told so too.
d joins
----
0  d join fails (closed): closed: succeeded in round 0 (done)
