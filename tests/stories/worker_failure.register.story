# One worker fails: its node ends the round, everybody is expected back, and the last one to return completes the next round.
# No last call: all who were in it are back. One restart is spent, by the job, not by a node.
job 1:3 restarts=2 last_call_timeout=0

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  a writes 2: refused, the register is at 2
0  a writes 3: round 0 complete: a in, b in
0  a join: round 0 of a, b
0  b join: round 0 of a, b

b's workers fail
----
0  b writes 4: round 1 open: a expected, b expected; target 2; 1 of 2 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled

a joins
show a
----
0  a writes 5: round 1 open: a in, b expected; target 2; 1 of 2 restarts spent; round 0 ended: failed, by b
a join, until 1 at most · round 1: waiting for 1 of 2 nodes · here: a · expected back: b

b joins
show register
----
0  b writes 5: refused, the register is at 5
0  b writes 6: round 1 complete: a in, b in; 1 of 2 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
6: round 1 complete: a in, b in; 1 of 2 restarts spent; round 0 ended: failed, by b
