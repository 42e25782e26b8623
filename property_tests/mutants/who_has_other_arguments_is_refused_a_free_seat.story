# who has other arguments is refused a free seat
# O2: b#1 is refused for its arguments, and no other job keeps it out
world nodes=2 max=2 named=2
start a
start-stranger b
