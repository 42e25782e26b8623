# no round ends for a whole segment
# L9: no rest 21.00 s after start, at most 20.8 s: round 0 complete [a:in c:in b:waiting d:waiting]
world nodes=4 min=2 max=4 unit=2 racks=2
start a
start c
pass 3
start b
start d
pass 20
