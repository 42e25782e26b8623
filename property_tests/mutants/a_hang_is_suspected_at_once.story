# a hang is suspected at once
# O11: a blames rank 0, and its world moves
world nodes=2 min=2 max=2 hang=4
start a
pass 0.1
