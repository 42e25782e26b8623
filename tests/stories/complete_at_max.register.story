# A round that reaches the maximum waits for nobody: the last arriver's own write completes it.
job 1:2

a joins
show a
----
0  a writes 1: round 0 open: a in
a join, until 5 at most · round 0: last call, 1 of up to 2 nodes · here: a

b joins
show register
----
0  b writes 2: round 0 complete: a in, b in
0  a join: round 0 of a, b
0  b join: round 0 of a, b
2: round 0 complete: a in, b in
