# A node that finds no room waits, for as long as it takes, and is promoted when a seat is free: by the very write that frees it.
job 2 join_timeout=10

a b join
c joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  c writes 3: round 0 complete: a in, b in, c waiting

time 5000
show c
----
c join, until 5001 at most · round 0: spare, 2 of 2 seats are taken

b leaves
show register
----
5000  b writes 4: round 1 open: a expected, c in; target 1; round 0 ended: left, by b
5000  a watch: round 0 is over; round 0 ended: left, by b
5000  b leave: settled
4: round 1 open: a expected, c in; target 1; round 0 ended: left, by b

# From now on it has the time of a join.
time 5009
show c
----
c join, until 5010 at most · round 1: waiting for 1 of 2 nodes · here: c · expected back: a

a joins
----
5009  a writes 5: round 1 complete: a in, c in; round 0 ended: left, by b
5009  c join: round 1 of a, c
5009  a join: round 1 of a, c
