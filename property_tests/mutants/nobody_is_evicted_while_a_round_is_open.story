# nobody is evicted while a round is open
# L2: after 105 s without faults: nobody lives; round 0 complete [b:in a:waiting]
world max=1
start b
pass 1
crash b
