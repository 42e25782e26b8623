# A round below the minimum waits, until its nodes' time to join is over. Who gives up leaves no seat behind.
job 2:3 join_timeout=10

a joins
time 9.9
show a
----
0  a writes 1: round 0 open: a in
a join, until 10 at most · round 0: waiting for 1 of 2 nodes · here: a · not yet seen: 1

time 10
show register
----
10  a writes 2: round 0 open: nobody
10  a join fails (timeout): round 0: waiting for 1 of 2 nodes · here: a · not yet seen: 1
2: round 0 open: nobody
