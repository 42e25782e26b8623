# gone nodes do no chores
# L2: after 111 s without faults: nobody lives; round 0 complete [f:in a:gone]
world nodes=6 max=2 barrier=2
start f
pass 1
crash f
