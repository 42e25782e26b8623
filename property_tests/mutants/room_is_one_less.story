# room is one less
# L9: no rest 18.00 s after start, at most 17.5 s: round 0 open [a:waiting]
world nodes=1 max=1
