# the verdict is nothing to running workers
# L9: no rest 4.98 s after no fault, at most 4.1 s: round 0 complete, closed CANCELLED [a:in]
world nodes=1 max=1 seed=6565727
start a
cancel
