# Found by the simulator (L2): c dies, and the others, whose workers have all succeeded, wait at the exit barrier only for so
# long. Those who have left are still here, waiting for the verdict; before, none of them looked for the dead any longer.
job 3 barrier_timeout=2

a b c join
a's workers succeed
b's workers succeed
c is silent
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c
0  a writes 4: round 0 complete: a done, b in, c in
0  a done: settled
0  b writes 5: round 0 complete: a done, b done, c in
0  b done: settled

time 9.0
----
2  a writes 6: round 0 complete: a gone, b done, c in
2  b writes 7: round 0 complete: a gone, b gone, c in
7  a writes 8: round 1 open: nobody; round 0 ended: lost, by a
7  b watch: round 0 is over; round 0 ended: lost, by a
7  a watch: round 0 is over; round 0 ended: lost, by a
