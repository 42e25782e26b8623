# a job of one node takes whoever comes before it is complete
# O2: b#1 takes a seat that a#1 and its job have not for it, by its arguments
world nodes=2 max=1 named=2 restarts=3
start a
pass 5
kill-worker a
start-stranger b
pass 20
