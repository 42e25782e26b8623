# Nobody is there when a wakes: the store is empty, and what a held is of a minute ago. Its world is over for it, and it begins
# anew.
job 1

a joins
a is silent
the store is empty
time 63.0
a slept
----
0  a writes 1: round 0 complete: a in
0  a join: round 0 of a
63  a watch: round 0 is over

a joins
----
63  a writes 1: round 0 complete: a in
63  a join: round 0 of a
