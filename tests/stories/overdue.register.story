# b's workers cannot be killed, and its agent lives: it is expected back until it is overdue (the grace of its workers and
# some more), by the clock of those who wait. Then the others go on; a seat is free for b when it comes.
job 1:2 restarts=1 overdue_timeout=45

a b join
a's workers fail
a joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
0  b watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a

time 44
show a
----
a join, until 45 at most · round 1: waiting for 1 of 2 nodes · here: a · expected back: b

time 45
----
45  a writes 5: round 1 complete: a in; 1 of 1 restarts spent; round 0 ended: failed, by a
45  a join: round 1 of a

b joins
show register
----
45  b writes 4: refused, the register is at 5
45  b writes 6: round 1 complete: a in, b waiting; 1 of 1 restarts spent; round 0 ended: failed, by a
6: round 1 complete: a in, b waiting; 1 of 1 restarts spent; round 0 ended: failed, by a
