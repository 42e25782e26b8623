# The store remembers all that a held when it fell asleep: it goes on as if it had been paused.
job 2

a b join
a is silent
b is silent
time 63.0
a slept
b slept
time 70.0
show a
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
a watch, until 71 at most · round 0: 2 nodes running
2: round 0 complete: a in, b in
