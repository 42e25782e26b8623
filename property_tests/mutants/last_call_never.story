# last call never
# L2: after 105 s without faults: a#2 (joining); round 0 open [a#2:in]
world nodes=2 max=2
