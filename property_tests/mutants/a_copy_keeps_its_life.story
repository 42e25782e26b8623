# a copy keeps its life
# R4: a join: epoch 1 does not rise
world nodes=2 max=2
start a
pass 1
older 0.1
