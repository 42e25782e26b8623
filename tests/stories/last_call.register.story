# Below the maximum, a round that has its minimum waits for more: the last call. It counts from when each node saw the
# quorum, and a later arrival does not start it again.
job 2:4

a joins
b joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in

time 4.0
----
(nothing)

c joins
show c
----
4  c writes 3: round 0 open: a in, b in, c in
c join, until 5 at most · round 0: last call, 3 of up to 4 nodes · here: a, b, c

# The coordinator (a, the lowest seat) completes it at 5.0, not at 9.0.
time 5.0
----
5  a writes 4: round 0 complete: a in, b in, c in
5  b join: round 0 of a, b, c
5  c join: round 0 of a, b, c
5  a join: round 0 of a, b, c
