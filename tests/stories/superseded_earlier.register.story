# It is the incarnation that counts, not who comes last.
job 2

b#2 joins
b joins
----
0  b#2 writes 1: round 0 open: b#2 in
0  b join fails (superseded): a later start of b has taken its seat
