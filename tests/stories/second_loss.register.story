# The store is lost a second time before a world was completed in the restored life: that one counts by what it was made from,
# and is restored too.
job 2 restarts=3

a b join
b's workers fail
a joins
b is silent
the store is empty
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a watch: round 0 is over; round 0 ended: failed, by b
0  b end: settled
0  a writes 4: round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a restores 5: life 2, round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a writes 6: life 2, round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b

the store is empty
show register
----
0  a restores 7: life 3, round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a writes 8: life 3, round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
8: life 3, round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b

# Then the first life comes back from a backup. What a holds was made from it, and counts more, also for b, which knew nothing of
# later lives.
the store is older 4
b is back
b joins
show register
----
0  a restores 5: life 4, round 1 open: a expected, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a writes 6: life 4, round 1 open: a in, b expected; target 2; 1 of 3 restarts spent; round 0 ended: failed, by b
0  b writes 4: refused, the register is at 6
0  b writes 7: life 4, round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
0  a join: round 1 of a, b
0  b join: round 1 of a, b
7: life 4, round 1 complete: a in, b in; 1 of 3 restarts spent; round 0 ended: failed, by b
