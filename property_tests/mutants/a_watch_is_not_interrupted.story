# a watch is not interrupted
# L2: after 105 s without faults: nobody lives; round 0 complete [a:in]
world nodes=1 max=1
