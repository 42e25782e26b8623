# a mark that the store forgot is not made again
# L2: after 105 s without faults: nobody lives; round 0 complete [a:done b:in]
world nodes=2 min=2 max=2
start a
start b
slow b 0.6
pass 5
start b
late-write b 5
pass 1
drain b
late-write a 2
pass 2
empty
pass 1
