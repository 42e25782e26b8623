# All own workers have succeeded, another node's fail: the result is void.
ready 0
beat 0.0
worker 0 exits 0
worker 1 exits 0
over 0
----
0  HELD: Beat
0  RUNNING: Start round 0
0  RUNNING
0  BARRIER: MarkDone
0  JOINING: Join

ready 1
beat 0.0
----
0  HELD: Beat
0  RUNNING: Start round 1
