# leaving waits for ever
# G6: leaves without end: JOINING + Signalled(signum=15, at=0.0) -> LEAVING: (Leave(),)
world nodes=1 max=1
start a
drain a
