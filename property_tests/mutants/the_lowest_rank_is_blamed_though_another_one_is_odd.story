# the lowest rank is blamed though another one is odd
# O11: a blames rank 0 alone, which waits like the others
world nodes=5 hang=4
start b
start c
start a
pass 1
hang b
pass 5
