# an echo ends the round at once
# G4: ends the round before others that failed are heard: RUNNING + Raised(local_rank=0, raised_at=1.0005, at=1.0005, is_echo=True) -> STOPPING: (Record(local_rank=0, code=None, died_at=1.0005, origin=<Origin.RAISE: 'raise'>), End(why=<Why.FAILED: 'failed'>, is_open=None))
world nodes=2 min=2 max=2 echoes=1
start a
start b
pass 1
crash a
