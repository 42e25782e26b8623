# a worker that raised is stopped like the others
# G6: sends [Signal(signum=15, spared=None)] to workers that raised before they had time to end: RUNNING + Raised(local_rank=0, raised_at=1.0005, at=1.0005, is_echo=True) -> STOPPING: (Record(local_rank=0, code=None, died_at=1.0005, origin=<Origin.RAISE: 'raise'>), Signal(signum=15, spared=None))
world nodes=2 min=2 max=2 echoes=1
start a
start b
pass 1
crash b
