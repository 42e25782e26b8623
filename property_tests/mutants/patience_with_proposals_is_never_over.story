# patience with proposals is never over
# L2: after 105 s without faults: nobody lives; round 0 complete [b:in a:in]
world nodes=2 max=2 helping=1
start b
pass 1
crash b
