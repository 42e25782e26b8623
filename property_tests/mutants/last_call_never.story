# last call never
# L9: no rest 18.00 s after start, at most 17.6 s: round 0 open [a:in]
world nodes=2 max=2
