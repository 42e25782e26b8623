# A person ends the job: everybody is told the same, also those who come later.
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

c joins
----
0  c join fails (closed): closed: cancelled in round 0 (asked)
