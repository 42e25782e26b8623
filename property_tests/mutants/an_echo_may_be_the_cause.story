# an echo may be the cause
# G9: round 0 is said to have failed by b#1, which did not
world nodes=2 min=2 max=2 echoes=1
start a
start b
pass 1
crash a
