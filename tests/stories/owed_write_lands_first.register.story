# The late write lands before b has read again: b finds itself seated, and does not arrive twice.
job 2

a joins
lose the reply of b's next write
b joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in (it lands, the reply is lost)
0  a join: round 0 of a, b
0  b join: round 0 of a, b
