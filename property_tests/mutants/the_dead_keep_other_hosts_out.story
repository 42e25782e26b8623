# the dead keep other hosts out
# L2: after 105 s without faults: a#10 (joining); round 0 complete [b:in]
world nodes=2 max=1
start-local b
pass 1
