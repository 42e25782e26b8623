# ready standbys are not told of
# L9: no rest 20.00 s after start, at most 19.6 s: round 0 complete [a:in]
world nodes=2 max=1 standbys=3
start a
start b
