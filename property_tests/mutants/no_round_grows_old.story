# no round grows old
# L2: after 117 s without faults: nobody lives; round 1 complete [a:in b#2:in]
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 3
