# c has waited as a spare for longer than a join may take when the store loses its memory. A spare is not restored; it comes again,
# and its first deadline does not count.
job 2 join_timeout=10

a b c join
time 5000
the store is empty
time 5001
show c
show register
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  c writes 3: round 0 complete: a in, b in, c waiting
0  b join: round 0 of a, b
0  a join: round 0 of a, b
5000  a restores 4: life 2, round 0 complete: a in, b in
5000  c writes 5: life 2, round 0 complete: a in, b in, c waiting
c join, until 5002 at most · round 0: spare, 2 of 2 seats are taken
5: life 2, round 0 complete: a in, b in, c waiting

# It has the time of a join from the moment at which it was a spare last.
a leaves
b is silent
time 5012
----
5001  a writes 6: life 2, round 1 open: b expected, c in; target 1; round 0 ended: left, by a
5001  b watch: round 0 is over; round 0 ended: left, by a
5001  a leave: settled
5006  c writes 7: life 2, round 1 open: c in; round 0 ended: left, by a
5011  c writes 8: life 2, round 1 open: nobody; round 0 ended: left, by a
5011  c join fails (timeout): round 1: waiting for 1 of 2 nodes · here: c · not yet seen: 1 · lost: b
