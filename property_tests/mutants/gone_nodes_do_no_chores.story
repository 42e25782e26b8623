# gone nodes do no chores
# L10: f#1 died 14.00 s ago: round 0 complete [f:in a:gone]
world nodes=6 max=2 barrier=2
start f
pass 1
crash f
