# a missing worker that never entered a call is left missing
# G4: a worker is missing that never entered a call, and no round ends for it: RUNNING + Exited(local_rank=0, code=1, died_at=1.0, at=1.0, is_echo=None, began_at=None, entered=False) -> RUNNING: (Record(local_rank=0, code=1, died_at=1.0, origin=None),)
world nodes=1 max=1 workers=2 alone=1 enters=0
start a
pass 1
fail a
fail a
