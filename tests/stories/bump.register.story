# S15: b was told to leave while its arrival is under way, with an unknown outcome. It cannot simply go: its write could still
# land and seat a node that nobody runs. So it moves the version on (the bump), which voids any write based on the old one.
job 3

a joins
cut off at b's next write
b joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in (it is under way, and nothing is heard)

b leaves
b is back
----
0  b writes 2: round 0 open: a in
0  b leave: settled

b's write lands
show register
----
0  b writes 2: refused, the register is at 2
2: round 0 open: a in
