# a join has no end
# L6: b asks without end
world nodes=2 max=2 join=15
start a
pass 5
outage 10
start b
crash a
pass 10
