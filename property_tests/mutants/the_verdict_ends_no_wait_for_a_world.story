# the verdict ends no wait for a world
# L9: no rest 5.00 s after no fault, at most 4.2 s: round 0 complete, closed SUCCEEDED [a:done b:waiting]
world nodes=2 max=1
start a
start b
