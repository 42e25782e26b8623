# a round that I fled from is not ended
# L2: a has found no world, but all has been well for long
world nodes=1 max=1 fence=3
start a
cut-out a 2
pass 2
