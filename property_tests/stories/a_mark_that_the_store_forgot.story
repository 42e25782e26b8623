# Found by the enumerator (L1), and by the simulator in 1 run of 1,500 (L2): a's mark that its workers had succeeded was lost with
# the store; it was restored by b, who had not seen it yet, and both stood at the exit barrier without end.
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
