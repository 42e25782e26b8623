# a worker that raised alone has no grace
# G6: gives a worker that raised less than its grace: RUNNING + Raised(local_rank=0, raised_at=8101.0, at=8101.0, is_echo=None) -> RUNNING: (Record(local_rank=0, code=None, died_at=8101.0, origin=<Origin.RAISE: 'raise'>),)
world max=1 seed=2 alone=2 echoes=1
start a
start b
start c
pass 1
fail b
