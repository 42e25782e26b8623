# A signal to a running member's agent: the round ends without it, and nothing is charged.
job 1:3 last_call_timeout=0

a b c join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  a writes 2: refused, the register is at 3
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c

c leaves
----
0  c writes 4: round 1 open: a expected, b expected; target 2; round 0 ended: left, by c
0  a watch: round 0 is over; round 0 ended: left, by c
0  b watch: round 0 is over; round 0 ended: left, by c
0  c leave: settled

a b join
show register
----
0  a writes 5: round 1 open: a in, b expected; target 2; round 0 ended: left, by c
0  b writes 5: refused, the register is at 5
0  b writes 6: round 1 complete: a in, b in; round 0 ended: left, by c
0  a join: round 1 of a, b
0  b join: round 1 of a, b
6: round 1 complete: a in, b in; round 0 ended: left, by c

# Who is done may leave: its place in the world stays, and the round goes on.
a's workers succeed
a leaves
----
0  a writes 7: round 1 complete: a done, b in; round 0 ended: left, by c
0  a done: settled
0  a writes 8: round 1 complete: a gone, b in; round 0 ended: left, by c
0  a leave: settled

# A spare may leave, and nobody minds.
d e join
d leaves
show register
----
0  d writes 9: round 1 complete: a gone, b in, d waiting; round 0 ended: left, by c
0  e writes 10: round 1 complete: a gone, b in, d waiting, e waiting; round 0 ended: left, by c
0  d writes 11: round 1 complete: a gone, b in, e waiting; round 0 ended: left, by c
0  d leave: settled
11: round 1 complete: a gone, b in, e waiting; round 0 ended: left, by c
