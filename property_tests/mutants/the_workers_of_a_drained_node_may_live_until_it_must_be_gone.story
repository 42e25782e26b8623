# the workers of a drained node may live until it must be gone
# O8: a#1 is gone 0.001 s after its deadline
world nodes=1 max=1
start a
pass 1
hang a
notice a 1
