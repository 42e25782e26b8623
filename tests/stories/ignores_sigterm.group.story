# A worker that does not end within the grace is killed.
grace 5.0

ready 0
beat 0.0
over 0
----
0  HELD: Beat
0  RUNNING: Start round 0
0  STOPPING: Signal 15

time 4.9
----
4  STOPPING: Signal 15 children

time 5.0
worker 0 exits -9
worker 1 exits -9
reaped
----
5  STOPPING: Signal 9
5  STOPPING
5  STOPPING
5  JOINING: Join
