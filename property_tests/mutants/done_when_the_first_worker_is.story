# done when the first worker is
# G4: done while workers [1] live: RUNNING + Exited(local_rank=0, code=0, died_at=1.0, at=1.0) -> BARRIER: (MarkDone(),)
world nodes=1 max=1 workers=2
