# b died unseen; that broke a's collective, and a's workers failed. The loss was the cause: no restart is spent for it.
job 1:2 restarts=1

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

time 3.0
b is silent
a's workers fail
a joins
----
3  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a
3  a end: settled
3  a writes 4: round 1 open: a in, b expected; target 2; 1 of 1 restarts spent; round 0 ended: failed, by a

# b's last heartbeat was read at 3.0.
time 9.0
----
8  a writes 5: round 1 complete: a in; round 0 ended: lost, by a
8  a join: round 1 of a
