# b hangs and is killed and started again, with its agent. It comes back before anybody held it for dead. Refunding that would
# let a program that kills its own host restart for ever.
job 2 restarts=1

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

b#2 joins
show register
----
0  b#2 writes 5: round 1 complete: a in, b#2 in; 1 of 1 restarts spent; round 0 ended: failed, by a
0  a join: round 1 of a, b#2
0  b#2 join: round 1 of a, b#2
5: round 1 complete: a in, b#2 in; 1 of 1 restarts spent; round 0 ended: failed, by a
