# a's offer to restore the register is under way. It looks before it decides again, and offers another life: the first one might
# yet begin. It comes too late.
job 2

a b join
b is silent
delay a's next write
the store is empty
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  a restores 3: life 2, round 0 complete: a in, b in (it is under way)
0  a restores 3: life 2, round 0 complete: a in, b in

a's write lands
show register
b is back
show b
----
0  a restores 3: refused, the register is at 3
3: life 2, round 0 complete: a in, b in
b watch, until 1 at most · round 0: 2 nodes running
