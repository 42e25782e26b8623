# The register no longer tells whose failure ended the round, so this node is checked, found unfit, and leaves.
checks
begin
fit
ready 0
beat 0.0
worker 0 exits 1
worker 1 exits -15
reaped
over 0 by somebody
unfit
gone
----
0  CHECKING: Check
0  JOINING: Join
0  HELD: Beat
0  RUNNING: Start round 0
0  STOPPING: Record worker 0 (1) · End failed · Signal 15
0  STOPPING: Record worker 1 (-15)
0  CHECKING
0  CHECKING: Check
0  LEAVING: RecordUnfit GPU 3 has lost its memory · Leave
0  ENDED · refused: unfit
