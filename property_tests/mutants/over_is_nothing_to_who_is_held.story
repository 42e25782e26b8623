# over is nothing to who is held
# L9: no rest 29.00 s after crash, outage, start, at most 28.4 s: round 1 open [c:in a#2:in]
world min=3 seed=1
start a
pass 1
crash a
outage 1
