# A look is good for two heartbeats. b stood still for a TTL, which a saw at 6.0; but c's failure ended the round before a could say so.
# b goes on at once, and its heart beats all the while that a stops its workers. Then a joins, and must not evict b by what it
# saw long ago (it did, in the first write-up of the protocol, and c's failure was refunded with it): it looks again.
job 3 restarts=3

a b c join
time 1.0
b is silent
cut off at a's next write
time 6.0
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  c writes 3: round 0 complete: a in, b in, c in
0  c join: round 0 of a, b, c
0  a join: round 0 of a, b, c
0  b join: round 0 of a, b, c
6  a writes 4: round 1 open: a expected, c expected; target 2; round 0 ended: lost, by a (it is under way, and nothing is heard)

c's workers fail
a is back
b is back
----
6  c writes 4: round 1 open: a expected, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
6  c end: settled
6  a watch: round 0 is over; round 0 ended: failed, by c
6  b watch: round 0 is over; round 0 ended: failed, by c

time 30.0
show register
a joins
----
4: round 1 open: a expected, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
30  a writes 5: round 1 open: a in, b expected, c expected; target 3; 1 of 3 restarts spent; round 0 ended: failed, by c
