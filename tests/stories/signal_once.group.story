# The agent is told to stop. Its workers get the same signal and the shutdown timeout; the register is told.
ready 0
beat 0.0
signal 15
----
0  HELD: Beat
0  RUNNING: Start round 0
0  LEAVING: Leave · Signal 15

gone
time 3.1
worker 0 exits -15
worker 1 exits -15
reaped
----
0  LEAVING
3.1  LEAVING
3.1  LEAVING
3.1  ENDED · stopped by signal 15
