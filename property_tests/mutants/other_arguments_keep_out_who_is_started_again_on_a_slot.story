# other arguments keep out who is started again on a slot
# O2: b#2 is refused for its arguments, and no other job keeps it out
world nodes=2 max=2 named=2
start a
start b
pass 2
start-stranger b
pass 20
