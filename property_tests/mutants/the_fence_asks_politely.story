# the fence asks politely
# G13: does not kill its workers at the fence: RUNNING + Elapsed(at=3.004000003) -> STOPPING: (Signal(signum=15, spared=None, children=None),)
world nodes=1 max=1 fence=3
start a
pass 1
pause-heart a 5
pass 5
