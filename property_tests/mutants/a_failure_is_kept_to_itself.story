# a failure is kept to itself
# G4: a failure that ends no round: RUNNING + Exited(local_rank=0, code=1, died_at=1.0, at=1.0) -> STOPPING: (Record(local_rank=0, code=1, died_at=1.0),)
world nodes=1 max=1
start a
pass 1
fail a
