# of all proposals the last comes true
# L11: b#1 writes 6 versions in round 1
world min=3 seed=2 give_up=3 helping=1
start a
pass 1
crash a
