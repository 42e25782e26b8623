# A newcomer with room: the coordinator ends the round for it after a second, and no restart is spent.
job 1:3 last_call_timeout=0

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in
0  a writes 2: refused, the register is at 2
0  a writes 3: round 0 complete: a in, b in
0  a join: round 0 of a, b
0  b join: round 0 of a, b

c joins
time 0.5
show c
----
0  c writes 4: round 0 complete: a in, b in, c waiting
c join, until 1 at most · round 0: 2 nodes running

time 1.0
----
1  a writes 5: round 1 open: a expected, b expected, c in; target 2; round 0 ended: upscale, by a
1  b watch: round 0 is over; round 0 ended: upscale, by a
1  a watch: round 0 is over; round 0 ended: upscale, by a

a b join
show register
----
1  a writes 6: round 1 open: a in, b expected, c in; target 2; round 0 ended: upscale, by a
1  b writes 6: refused, the register is at 6
1  b writes 7: round 1 complete: a in, b in, c in; round 0 ended: upscale, by a
1  c join: round 1 of a, b, c
1  b join: round 1 of a, b, c
1  a join: round 1 of a, b, c
7: round 1 complete: a in, b in, c in; round 0 ended: upscale, by a
