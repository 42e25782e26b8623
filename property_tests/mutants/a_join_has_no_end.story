# a join has no end
# L11: b reads the register 4 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 max=2 join=15
start a
pass 5
outage 10
start b
crash a
pass 10
