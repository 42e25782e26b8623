# Time is up for a, and its word that it leaves is lost. It says no more: what cannot be confirmed dies with the heartbeat, and
# another node evicts it a TTL later.
job 3 join_timeout=10

a joins
time 9.0
b joins
----
0  a writes 1: round 0 open: a in
9  b writes 2: round 0 open: a in, b in

lose a's next write
time 10.0
a is silent
show register
----
10  a writes 3: round 0 open: b in (it is lost)
10  a join fails (unconfirmed)
2: round 0 open: a in, b in

time 16.0
----
15  b writes 3: round 0 open: b in
