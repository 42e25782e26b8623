# The store was restarted and is empty. Nothing is written by those who knew better, not even by a: or a job of yesterday
# would start again from nothing.
job 2 restarts=3

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

the store is empty
----
0  a watch fails (store lost): the register came back empty (I hold version 2)
0  b watch fails (store lost): the register came back empty (I hold version 2)

show register
a joins
----
nothing
0  a join fails (store lost): the register came back empty (I hold version 2)
