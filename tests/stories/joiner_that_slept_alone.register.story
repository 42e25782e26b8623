# Both stood still past their deadlines: a host was suspended. Nobody could have come to them, so they have the time of a join from
# now on.
job 3 join_timeout=600

a b join
time 590
a is silent
b is silent
time 700
a slept
b slept
show a
show b
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
a join, until 701 at most · round 0: waiting for 1 of 3 nodes · here: a, b · not yet seen: 1
b join, until 701 at most · round 0: waiting for 1 of 3 nodes · here: a, b · not yet seen: 1

c joins
----
700  c writes 3: round 0 complete: a in, b in, c in
700  a join: round 0 of a, b, c
700  b join: round 0 of a, b, c
700  c join: round 0 of a, b, c
