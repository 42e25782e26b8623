# A second signal: at once.
ready 0
beat 0.0
signal 2
time 0.5
signal 2
----
0  HELD: Beat
0  RUNNING: Start round 0
0  LEAVING: Leave · Signal 2
0.5  LEAVING: Signal 9

reaped
----
0.5  ENDED · stopped by signal 2
