# a proposal of another era counts
# S9: workers of b#1 still run in round 1 while those of a#2 start in 2
world helping=1
start a
start b
pass 5
start c
pass 2
start a
cut b 1
pass 1
