# the last resort is SIGTERM
# G13: asks workers to end that were asked before: STOPPING + Elapsed(at=71904.047900103) -> STOPPING: (Signal(signum=15, spared=None, children=None),)
world nodes=2 max=2 seed=4 last_call=0 fence=3
start a
start b
pass 1
hang b
pass 5
