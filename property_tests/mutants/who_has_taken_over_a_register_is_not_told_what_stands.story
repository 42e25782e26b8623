# who has taken over a register is not told what stands
# L12: a#1 holds another register, and does not tell
world nodes=1 max=1
start a
pass 1
older 1
