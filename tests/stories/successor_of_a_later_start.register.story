# Both nodes died, and are started again on a host whose clock is behind. Nobody throws the dead ones out, so each new start
# waits for a TTL. Then its launcher begins anew with an incarnation after the dead one's: here a#3, which takes the seat.
job 2

a#2 b join
a#2 is silent
b is silent
----
0  a#2 writes 1: round 0 open: a#2 in
0  b writes 2: round 0 complete: a#2 in, b in
0  b join: round 0 of a#2, b
0  a#2 join: round 0 of a#2, b

a joins
time 4.0
----
(nothing)

time 6.0
----
5  a join fails (its clock is behind): the last start of a is dead, and was later than this one by its clock

a#3 joins
----
6  a#3 writes 3: round 1 open: b expected, a#3 in; target 1; round 0 ended: lost, by a#3
