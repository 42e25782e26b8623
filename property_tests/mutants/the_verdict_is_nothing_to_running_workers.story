# the verdict is nothing to running workers
# L2: after 105 s without faults: nobody lives; round 0 complete, closed CANCELLED [a:in]
world nodes=1 max=1 seed=4
cancel
