# Another node closed the job: our workers are stopped, then the agent ends with that verdict.
ready 0
beat 0.0
closed cancelled
time 3.1
worker 0 exits -15
worker 1 exits 0
reaped
----
0  HELD: Beat
0  RUNNING: Start round 0
0  STOPPING: Signal 15
3.1  STOPPING
3.1  STOPPING
3.1  ENDED · the job has cancelled
