# c, a spare, stood still while the store lost its memory and the others gave it back. What c held counts for nothing; but it was a
# spare when it fell asleep, so it has the time of a join from now on.
job 2 join_timeout=10

a b c join
time 5000
c is silent
the store is empty
time 5060
c slept
show c
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  c writes 3: round 0 complete: a in, b in, c waiting
0  b join: round 0 of a, b
0  a join: round 0 of a, b
5000  a restores 4: life 2, round 0 complete: a in, b in
5060  c writes 5: life 2, round 0 complete: a in, b in, c waiting
c join, until 5061 at most · round 0: spare, 2 of 2 seats are taken
5: life 2, round 0 complete: a in, b in, c waiting
