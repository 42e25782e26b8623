# The last acknowledged heartbeat was sent at 2.0; with a fence of 3 s the workers are dead before the others can start again.
fence 3.0

ready 0
beat 0.0
time 2.2
beat 2.0
----
0  HELD: Beat
0  RUNNING: Start round 0
2.2  RUNNING

time 4.9
----
(nothing)

time 5.0
reaped
----
5  STOPPING: Signal 9
5  JOINING: Join
