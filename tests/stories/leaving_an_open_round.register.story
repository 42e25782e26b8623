# Who leaves a round that has not begun just gives up its seat.
job 3

a b join
a leaves
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  a writes 3: round 0 open: b in
0  a leave: settled
3: round 0 open: b in

# Who has no seat and owes nothing has nothing to say.
a leaves
----
0  a leave: settled
