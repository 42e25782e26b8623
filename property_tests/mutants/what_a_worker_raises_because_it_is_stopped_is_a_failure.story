# what a worker raises because it is stopped is a failure
# G4: takes what a worker raises because it is stopped for a failure: STOPPING + Raised(local_rank=1, raised_at=53701.02, at=53701.03, is_echo=True) -> STOPPING: (Record(local_rank=1, code=None, died_at=53701.02, origin=<Origin.RAISE: 'raise'>),)
world nodes=2 max=2 workers=2 seed=1 links=1 reserves=2 echoes=1
start a
start b
pass 1
fail a
