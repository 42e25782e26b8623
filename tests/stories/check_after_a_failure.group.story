# A failure of this node ended the round, so it is checked before it joins again. After the failure of another node it is not.
checks
begin
fit
ready 0
beat 0.0
time 3.0
worker 0 exits 1
worker 1 exits -15
over 0 by a
reaped
fit
ready 1
beat 3.0
worker 1 exits 1
worker 0 exits -15
reaped
over 1
ready 2
beat 3.0
over 2
worker 0 exits -15
worker 1 exits -15
reaped
----
0  CHECKING: Check
0  JOINING: Join
0  HELD: Beat
0  RUNNING: Start round 0
3  STOPPING: Record worker 0 (1) · End failed · Signal 15
3  STOPPING: Record worker 1 (-15)
3  STOPPING
3  CHECKING: Check
3  JOINING: Join
3  HELD: Beat
3  RUNNING: Start round 1
3  STOPPING: Record worker 1 (1) · End failed · Signal 15
3  STOPPING: Record worker 0 (-15)
3  CHECKING
3  JOINING: Join
3  HELD: Beat
3  RUNNING: Start round 2
3  STOPPING: Signal 15
3  STOPPING: Record worker 0 (-15)
3  STOPPING: Record worker 1 (-15)
3  JOINING: Join
