# leaving kills nobody
# L2: after 105 s without faults: b (leaving); round 1 complete [a:in]
world nodes=2 max=2
start a
start b
pass 1
hang b
drain b
