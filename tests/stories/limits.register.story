# The limits are written with the first state. An agent that was given others is refused, with both; nothing is written.
job 1:2 restarts=3

a joins
----
0  a writes 1: round 0 open: a in

b was given 2:2 restarts=3
b joins
show register
----
0  b join fails (limits): the job runs with --nnodes=1:2 --max-restarts=3, this agent was given --nnodes=2:2 --max-restarts=3
1: round 0 open: a in
