# a node without workers heeds no signal
# G6: a signal that is not heeded: JOINING + Signalled(signum=15, at=0.0) -> JOINING: ()
world nodes=1 max=1
start a
drain a
