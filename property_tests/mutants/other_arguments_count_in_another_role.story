# other arguments count in another role
# O2: b#1 is refused for its arguments, and no other job keeps it out
world nodes=2 max=1 named=2 unlike=2
start a
start-stranger b
pass 20
