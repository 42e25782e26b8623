# Both machines stood still for a minute. When a, the coordinator, goes on, what it last heard of b is old: its sightings start
# afresh, and b has a whole TTL to be heard.
job 2

a b join
time 3.0
a is silent
b is silent
time 63.0
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a is back
time 67.0
----
(nothing)

b is back
time 80.0
show register
----
2: round 0 complete: a in, b in
