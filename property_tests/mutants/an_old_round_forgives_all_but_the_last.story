# an old round forgives all but the last
# L11: a#1 writes 6 versions in round 1
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 12
