# a reserve without its peers blames itself
# O11: b blames rank 1, and its world moves
world nodes=2 max=2 reserves=2 hang=4
start a
start b
pass 1
cut-out b 10
cut-in a 1
pass 10
