# A program that cannot be executed cannot be helped by a restart: the job is closed as failed at once.
job 2 restarts=3

a b join
b's workers cannot start
----
0  a writes 1: round 0 open: a in
0  b writes 2: round 0 complete: a in, b in
0  b join: round 0 of a, b
0  a join: round 0 of a, b
0  b writes 3: round 0 complete: a in, b in; closed FAILED in round 0: cannot start, by b
0  a watch: closed FAILED in round 0: cannot start, by b
0  b close: closed FAILED in round 0: cannot start, by b
