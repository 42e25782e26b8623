# In a world, with a fresh heartbeat, the workers start; all succeed; the register says that the job has.
begin
ready 0
beat 0.0
----
0  JOINING: Join
0  HELD: Beat
0  RUNNING: Start round 0

worker 0 exits 0
worker 1 exits 0
----
0  RUNNING
0  BARRIER: MarkDone

closed succeeded
----
0  ENDED · the job has succeeded
