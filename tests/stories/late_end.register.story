# a's word that round 0 failed comes when round 1 runs already. An end names its round: it cannot end another one.
job 2 restarts=3

a b join
delay a's next write
a b's workers fail
a b join
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by a (it is under way)
0  b writes 3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  b end: settled
0  a end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  b writes 4: refused, the register is at 4
0  b writes 5: round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
5: round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b

a's write lands
show register
----
0  a writes 3: refused, the register is at 5
5: round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
