# The coordinator has no authority. When it is dead or slow, the next node does its chore a patience later (0.6 s and more by
# rank): safety never depends on who it is.
job 1:4

a b c join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 open: a in, b in, c in

a is silent
time 6.5
----
5  b writes 4: round 0 open: b in, c in
5  b writes 5: round 0 complete: b in, c in
5  c join: round 0 of b, c
5  b join: round 0 of b, c
