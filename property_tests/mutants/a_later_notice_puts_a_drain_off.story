# a later notice puts a drain off
# L11: a#1 writes 6 versions in round 0
world nodes=1 max=1
start a
pass 1
notice a 5
