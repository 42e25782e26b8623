# Two newcomers complete a world at the empty store before a survivor is heard there. That world stands: the survivors' is over,
# and they join the new job as newcomers, here as spares.
job 2 restarts=3

a b join
a is silent
b is silent
the store is empty
c d join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  c writes 1: round 0 open: c in
0  d writes 2: round 0 complete: c in, d in
0  d join: round 0 of c, d
0  c join: round 0 of c, d

a is back
b is back
a b join
show register
show a
----
0  a watch: round 0 is over
0  b watch: round 0 is over
0  a writes 3: round 0 complete: c in, d in, a waiting
0  b writes 3: refused, the register is at 3
0  b writes 4: round 0 complete: c in, d in, a waiting, b waiting
4: round 0 complete: c in, d in, a waiting, b waiting
a join, until 1 at most · round 0: spare, 2 of 2 seats are taken
