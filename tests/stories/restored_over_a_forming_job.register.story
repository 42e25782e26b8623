# c is started at the empty store before anybody who knew the job was heard there again: it begins a job. Nothing was completed
# in that one, so the survivors' counts more, and c finds the seat that it can have.
job 2 restarts=3

a b join
a is silent
b is silent
the store is empty
c joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  c writes 1: round 0 open: c in

b is back
show register
----
0  b restores 2: life 2, round 0 complete: a in, b in
0  c writes 3: life 2, round 0 complete: a in, b in, c waiting
3: life 2, round 0 complete: a in, b in, c waiting

a is back
show a
show c
----
a watch, until 1 at most · round 0: 2 nodes running
c join, until 1 at most · round 0: spare, 2 of 2 seats are taken
