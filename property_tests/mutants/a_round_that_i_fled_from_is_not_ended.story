# a round that I fled from is not ended
# L9: no rest 29.00 s after cut-out, start, at most 28.2 s: round 0 complete [a:in]
world nodes=1 max=1 fence=3
start a
cut-out a 2
pass 2
