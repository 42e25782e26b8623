# a world of another life is never over
# O19: a#1 watch waits until inf, and something is due at 24.56 (now 24.56)
world nodes=2 max=2
start a
start b
pass 3
cut a 20
older 0.1
pass 22
gap b
pass 9
gap b
pass 3
gap b
