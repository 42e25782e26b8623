# who takes over a register is not told what was found
# L12: a#1 tells of Life(nonce='a@0/2', epoch=2) in the place of what it has not found
world nodes=1 max=1
start a
pass 1
older 0.1
