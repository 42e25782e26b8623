# Success is void when the round ends before everybody has succeeded: there is one result for all.
job 2 restarts=1

a b join
a's workers succeed
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 0 complete: a done, b in
0  a done: settled

b's workers fail
----
0  b writes 4: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled

a b join
----
0  a writes 5: round 1 open: a in, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by b
0  b writes 5: refused, the register is at 5
0  b writes 6: round 1 complete: a in, b in; 1 of 1 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
