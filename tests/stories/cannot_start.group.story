# No restart is spent: it could not help.
ready 0
cannot start
beat 0.0
cannot start
reaped
closed failed
----
0  HELD: Beat
0  HELD
0  RUNNING: Start round 0
0  LEAVING: RecordUnfit no such file · Close failed cannot start
0  LEAVING
0  ENDED · the job has failed
