# Two agents find no register and both make one. The store takes one of them; the other reads it and arrives there.
job 2

the store is away
a b join
----
(nothing)

the store is back
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
