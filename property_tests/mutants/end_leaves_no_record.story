# end leaves no record
# S6: a watch: round 0 is over, but no end of it is on record
world nodes=2 min=2 max=2 seed=2032982039 drift=0.0001 links=1 checks=1 standbys=3
start a
pass 1
