# nobody is evicted while workers run
# L2: after 105 s without faults: nobody lives; round 0 complete [b:in a:done]
world nodes=2 max=2
start b
pass 1
crash b
