# Nobody could reach the store for a minute. Nobody is evicted for it: silence that I was not there to hear does not count.
job 2

a b join
time 3.0
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

the store is away
time 63.0
----
(nothing)

the store is back
time 80.0
show register
----
2: round 0 complete: a in, b in
