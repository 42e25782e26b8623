# room is one less
# L2: after 105 s without faults: a (joining); round 0 open [a:waiting]
world nodes=1 max=1
