# a job of one node has spares that nobody has named
# O2: b#1 takes a seat that a#1 and its job have not for it, by its arguments
world nodes=2 max=1 named=2
start a
start b
pass 20
