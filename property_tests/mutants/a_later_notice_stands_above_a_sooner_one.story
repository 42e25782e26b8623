# a later notice stands above a sooner one
# O8: a#1 is gone 0.002 s after its deadline
world nodes=1 max=1
start a
pass 1
notice a 5
notice a 1
pass 2
