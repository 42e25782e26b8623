# a reserve's loss ends the round
# V8: b#2 join: the round ended as lost, but nobody whose workers ran is gone
world nodes=2 max=2 reserves=2
start a
start b
pass 1
start b
