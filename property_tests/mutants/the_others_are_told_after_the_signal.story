# the others are told after the signal
# G3: in the wrong order: RUNNING + Exited(local_rank=0, code=1, died_at=1.0, at=1.0) -> STOPPING: (Signal(signum=15), Record(local_rank=0, code=1, died_at=1.0), End(why=<Why.FAILED: 'failed'>))
world nodes=1 max=1 workers=2
start a
pass 1
fail a
