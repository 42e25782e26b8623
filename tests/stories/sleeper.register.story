# a stood still for a minute. Meanwhile the store lost its memory, and c began a job there, which is forming. What a holds would
# count more; but a was not there, and nobody who was there held it, so it joins what goes on.
job 1:2 restarts=3 last_call_timeout=2

a joins
time 3.0
a is silent
the store is empty
time 63.0
c joins
----
0  a writes 1: round 0 open: a in
2  a writes 2: round 0 complete: a in
2  a join: round 0 of a
63  c writes 1: round 0 open: c in

a slept
a joins
show register
----
63  a watch: round 0 is over
63  a writes 2: round 0 complete: a in, c in
63  c join: round 0 of a, c
63  a join: round 0 of a, c
2: round 0 complete: a in, c in
