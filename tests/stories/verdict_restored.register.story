# The store forgets before a, which has been told the verdict, has seen that the store knows it. Who comes later is told, and
# begins no job anew.
job 2

a b join
b cancels
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 0 complete: a in, b in; closed CANCELLED in round 0: asked, by b
0  a watch: closed CANCELLED in round 0: asked, by b
0  b close: closed CANCELLED in round 0: asked, by b

time 1.0
the store is empty
a lingers
----
1  a restores 4: life 2, round 0 complete: a in, b in; closed CANCELLED in round 0: asked, by b
1  a linger: settled

c joins
----
1  c join fails (closed): closed: cancelled in round 0 (asked)
