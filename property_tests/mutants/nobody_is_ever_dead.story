# nobody is ever dead
# L2: after 105 s without faults: nobody lives; round 0 complete [c:in a:waiting]
world max=1
start c
pass 1
crash c
