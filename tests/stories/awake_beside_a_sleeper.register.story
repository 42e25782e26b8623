# As in sleeper, but a was awake, and only the store was out of reach: what it holds counts more, and c is the newcomer.
job 1:2 restarts=3 last_call_timeout=2 upscale_after=9

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

a is back
show register
----
63  a restores 2: life 2, round 0 complete: a in
63  c writes 3: life 2, round 0 complete: a in, c waiting
3: life 2, round 0 complete: a in, c waiting
