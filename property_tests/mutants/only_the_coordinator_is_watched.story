# only the coordinator is watched
# L2: after 105 s without faults: nobody lives; round 0 complete [a:in b:waiting c:waiting]
world max=1
start a
start b
pass 1
start c
crash a
crash b
