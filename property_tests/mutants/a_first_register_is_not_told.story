# a first register is not told
# L12: a#1 holds another register, and does not tell
world nodes=1 max=1
