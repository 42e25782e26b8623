# an earlier incarnation is not told
# L2: after 105 s without faults: nobody lives; round 0 complete [a:in]
world nodes=1 max=1
start a
pass 1
crash a
