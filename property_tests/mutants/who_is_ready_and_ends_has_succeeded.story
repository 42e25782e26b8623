# who is ready and ends has succeeded
# G4: done though workers [1] were ready to leave, and had work left: RUNNING + Exited(local_rank=1, code=0, died_at=53711.0, at=53711.0) -> BARRIER: (MarkDone(),)
world nodes=1 max=1 workers=2 seed=1
start a
pass 1
notice a 20
pass 10
succeed a
