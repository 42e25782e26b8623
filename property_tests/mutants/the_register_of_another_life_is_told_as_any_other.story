# the register of another life is told as any other
# L12: a#1 tells of Life(nonce='a@0/2', epoch=2) as the same life, which it is not
world nodes=1 max=1
start a
pass 1
empty
