# Worker 0 had died before we sent any signal: it failed by itself, and that is recorded too. The round has ended already.
ready 0
beat 0.0
time 3.0
worker 1 exits 1
worker 0 had died at 2.9 with -11
reaped
----
0  HELD: Beat
0  RUNNING: Start round 0
3  STOPPING: Record worker 1 (1) · End failed · Signal 15
3  STOPPING: Record worker 0 (-11)
3  JOINING: Join
