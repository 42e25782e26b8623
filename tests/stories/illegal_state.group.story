# The register holds what no node may have written: the workers are stopped, and the agent ends.
ready 0
beat 0.0
refused illegal state
time 3.1
worker 0 exits -15
worker 1 exits -15
reaped
----
0  HELD: Beat
0  RUNNING: Start round 0
0  STOPPING: Signal 15
3.1  STOPPING
3.1  STOPPING
3.1  ENDED · refused: illegal state
