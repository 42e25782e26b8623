# The register is not told, since nobody answers. The node goes all the same; its silence tells the others.
ready 0
beat 0.0
signal 15
worker 0 exits -15
worker 1 exits -15
reaped
----
0  HELD: Beat
0  RUNNING: Start round 0
0  LEAVING: Leave · Signal 15
0  LEAVING
0  LEAVING
0  LEAVING

time 5.0
----
5  ENDED · stopped by signal 15
