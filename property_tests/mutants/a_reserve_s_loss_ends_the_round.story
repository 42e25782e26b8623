# a reserve's loss ends the round
# V8: a#2 join: the round ended as lost, but nobody whose workers ran is gone
world nodes=2 min=2 max=2 seed=2 reserves=2
start a
start b
pass 1
crash a
