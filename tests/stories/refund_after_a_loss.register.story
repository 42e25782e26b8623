# a's host serves the store, and dies. b's workers fail with their peers, and b cannot write that. The host comes back with an
# empty store. What b puts there is refunded, because the death explains it: no restart is allowed, and the job goes on.
job 2 restarts=0

a b join
the store is away
a is silent
b's workers fail
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

the store is empty
the store is back
----
0  b writes 3: refused, the register is at nothing
0  b restores 3: life 2, round 0 complete: a in, b in
0  b writes 4: life 2, round 1 open: a expected, b expected; target 2; 1 of 0 restarts spent; round 0 ended: failed, by b
0  b end: settled

b joins
a#2 joins
show register
----
0  b writes 5: life 2, round 1 open: a expected, b in; target 2; 1 of 0 restarts spent; round 0 ended: failed, by b
0  a#2 writes 6: life 2, round 1 complete: b in, a#2 in; round 0 ended: lost, by b
0  b join: round 1 of b, a#2
0  a#2 join: round 1 of b, a#2
6: life 2, round 1 complete: b in, a#2 in; round 0 ended: lost, by b
