# Who is there cannot be attested by what is restored: in an open round everybody arrives again, and the last of them makes it
# whole, without a last call.
job 2:3 restarts=3

a b c join
c's workers fail
a joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c
0  c writes 4: round 1 open: a expected, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
0  a watch: round 0 is over; round 0 ended: failed, by c
0  b watch: round 0 is over; round 0 ended: failed, by c
0  c end: settled
0  a writes 5: round 1 open: a in, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c

the store is empty
----
0  a restores 6: life 2, round 1 open: a expected, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
0  a writes 7: life 2, round 1 open: a in, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c

b c join
----
0  b writes 5: refused, the register is at 7
0  c writes 5: refused, the register is at 7
0  b writes 8: life 2, round 1 open: a in, b in, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
0  c writes 8: refused, the register is at 8
0  c writes 9: life 2, round 1 complete: a in, b in, c in; 1 of 3 restarts spent; round 0 ended: failed, by c
0  a join: round 1 of a, b, c
0  c join: round 1 of a, b, c
0  b join: round 1 of a, b, c
