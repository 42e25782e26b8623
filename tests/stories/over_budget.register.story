# The budget is judged when the survivors are back, not when the round ends: a death that is found meanwhile would still be
# refunded (see refund_over_budget).
job 2 restarts=0

a b join
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b

a's workers fail
----
0  a writes 3: round 1 open: a expected, b expected; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a
0  b watch: round 0 is over; round 0 ended: failed, by a
0  a end: settled

b joins
show register
----
0  b writes 4: round 1 open: a expected, b in; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a
4: round 1 open: a expected, b in; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a

a joins
----
0  a writes 4: refused, the register is at 4
0  a writes 5: round 1 open: a in, b in; target 2; 1 of 0 restarts spent; round 0 ended: failed, by a; closed FAILED in round 0: failed, by a
0  b join fails (closed): closed: failed in round 0 (failed)
0  a join fails (closed): closed: failed in round 0 (failed)

# A late agent is told the same.
c joins
----
0  c join fails (closed): closed: failed in round 0 (failed)
