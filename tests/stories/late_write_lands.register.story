# b's arrival is under way. b asks again, and its second write is answered; the first one comes too late.
job 3

a joins
delay b's next write
b joins
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 open: a in, b in (it is under way)
0  b writes 2: round 0 open: a in, b in

b's write lands
show b
----
0  b writes 2: refused, the register is at 2
b join, until 1 at most · round 0: waiting for 1 of 3 nodes · here: a, b · not yet seen: 1
