# Who knows the verdict goes when it has seen once more that the store knows it; when the store is away, as soon as it is back.
# There is an end to that, too.
job 2

a b join
b cancels
time 1.0
the store is away
a b linger
time 5.0
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 0 complete: a in, b in; closed CANCELLED in round 0: asked, by b
0  a watch: closed CANCELLED in round 0: asked, by b
0  b close: closed CANCELLED in round 0: asked, by b

the store is back
time 5.1
----
5  a linger: settled
5  b linger: settled

the store is away
a lingers
time 20.2
the store is back
----
20.2  a linger fails (unconfirmed): closed: cancelled in round 0 (asked)
