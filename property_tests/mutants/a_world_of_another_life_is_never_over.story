# a world of another life is never over
# S18: a#1 runs round 0 of another life for 11.00 s, at most 9.2 s
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
