# All own workers had succeeded, and the job then did too: a success that was reached stands above a signal.
ready 0
beat 0.0
worker 0 exits 0
worker 1 exits 0
signal 15
closed succeeded
----
0  HELD: Beat
0  RUNNING: Start round 0
0  RUNNING
0  BARRIER: MarkDone
0  LEAVING: Leave
0  ENDED · the job has succeeded
