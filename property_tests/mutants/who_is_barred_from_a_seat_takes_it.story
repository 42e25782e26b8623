# who is barred from a seat takes it
# O2: b#1 takes a seat that a#1 and its job have not for it, by its arguments
world nodes=2 max=1 named=2
start a
start-stranger b
