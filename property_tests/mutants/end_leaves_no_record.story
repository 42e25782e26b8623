# end leaves no record
# S6: b watch: round 0 is over, but no end of it is on record
world nodes=2 max=2 seed=2
start a
start b
pass 0.02
