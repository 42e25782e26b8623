# The store was restarted and is empty. The first of the survivors writes back what it holds, as the first state of another
# life; both are in the world that stands there, and their workers run on.
job 2 restarts=3

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

the store is empty
show register
show b
----
0  a restores 3: life 2, round 0 complete: a in, b in
3: life 2, round 0 complete: a in, b in
b watch, until 1 at most · round 0: 2 nodes running

# What was spent before is remembered.
b's workers fail
a b join
----
0  b writes 4: life 2, round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled
0  a writes 5: life 2, round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  b writes 5: refused, the register is at 5
0  b writes 6: life 2, round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
