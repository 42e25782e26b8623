# the workers of a node that leaves hear the signal of what they started
# G13: asks workers to end that were asked before: LEAVING + Elapsed(at=1.000000003) -> LEAVING: (Signal(signum=15, spared=None, children=None),)
world nodes=1 max=1
start a
pass 1
notice a 2
