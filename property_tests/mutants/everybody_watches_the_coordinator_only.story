# everybody watches the coordinator only
# L2: after 105 s without faults: nobody lives; round 0 complete [a:done b:in]
world nodes=2 max=2
start a
start b
pass 1
crash b
