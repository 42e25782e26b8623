# end leaves no record
# S6: a#2 join: round 0 is over, but no end of it is on record
world nodes=1 max=1
start a
pass 1
crash a
