# what a node that leaves was told is forgotten at its next timer
# G13: forgets that it has left: LEAVING + Elapsed(at=4.000000003) -> LEAVING: (Signal(signum=15, spared=None, children=True),)
world nodes=1 max=1
start a
pass 1
notice a 5
hang a
pass 2
