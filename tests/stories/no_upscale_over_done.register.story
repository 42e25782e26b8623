# A newcomer does not end a round in which somebody is done: that would throw finished work away.
job 1:3 last_call_timeout=0

a b join
a's workers succeed
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  a writes 2: refused, the register is at 2
0  a writes 3: round 0 complete: a in, b in
0  a join: round 0 of a, b
0  b join: round 0 of a, b
0  a writes 4: round 0 complete: a done, b in
0  a done: settled

c joins
time 60
show c
----
0  c writes 5: round 0 complete: a done, b in, c waiting
c join, until 61 at most · round 0: spare, the running round is finishing (2 nodes)

# If that round ends for another reason, the newcomer has its seat.
b leaves
show register
----
60  b writes 6: round 1 open: a expected, c in; target 1; round 0 ended: left, by b
60  a watch: round 0 is over; round 0 ended: left, by b
60  b leave: settled
6: round 1 open: a expected, c in; target 1; round 0 ended: left, by b
