# A spare is not restored: it comes again by itself, and nobody waits for it.
job 2

a b c join
the store is empty
show register
time 1.0
show c
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  c writes 3: round 0 complete: a in, b in, c waiting
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a restores 4: life 2, round 0 complete: a in, b in
0  c writes 5: life 2, round 0 complete: a in, b in, c waiting
5: life 2, round 0 complete: a in, b in, c waiting
c join, until 2 at most · round 0: spare, 2 of 2 seats are taken
