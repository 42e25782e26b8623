# a drained node joins again
# G2: joins though it is drained: STOPPING + Reaped(at=2.0) -> JOINING: (Join(),)
world nodes=1 max=1
start a
pass 1
notice a 20
pass 1
fail a
