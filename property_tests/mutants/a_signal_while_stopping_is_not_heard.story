# a signal while stopping is not heard
# G6: a signal that is not heeded: STOPPING + Signalled(signum=15, at=1.0) -> STOPPING: ()
world nodes=1 max=1 workers=2
start a
pass 1
fail a
drain a
