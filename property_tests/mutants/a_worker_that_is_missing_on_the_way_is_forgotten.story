# a worker that is missing on the way is forgotten
# G4: a worker is missing that never entered a call, and no round ends for it: MOVING + Exited(local_rank=0, code=1, died_at=11.0, at=11.0, is_echo=None, began_at=None, entered=False) -> MOVING: (Record(local_rank=0, code=1, died_at=11.0, origin=None),)
world nodes=5 min=5 max=5 alone=1 enters=0
start a
start c
start d
start e
pass 1
pause d 10
start b
pass 10
fail a
fail a
