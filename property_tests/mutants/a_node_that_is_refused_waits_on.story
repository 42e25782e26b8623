# a node that is refused waits on
# L9: no rest 18.00 s after start, start-other, at most 17.6 s: round 0 complete [a:in]
world nodes=2 max=1
start a
start-other b
