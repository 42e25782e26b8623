# who began to end after an echo is the cause
# G4: ends the round before others that failed are heard: STOPPING + Exited(local_rank=1, code=7, died_at=1.4100000000000001, at=2.0, is_echo=None, began_at=1.01, entered=None) -> STOPPING: (Record(local_rank=1, code=7, died_at=1.01, origin=<Origin.ENDING: 'ending'>), End(why=<Why.FAILED: 'failed'>, is_open=None))
world nodes=2 min=2 max=2 unlike=3 echoes=1
start a
start b
pass 1
pause b 1
crash a
pass 0.01
fail b
