# It is the incarnation that counts, not who comes last: while the later start lives. The earlier one waits until it knows.
job 2

b#2 joins
b joins
time 9.0
----
0  b#2 writes 1: round 0 open: b#2 in

time 10.0
----
10  b join fails (superseded): a later start of b has taken its seat
