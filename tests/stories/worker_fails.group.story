# The order is the rule: the failure is on record before the round ends, and the others learn that it ended while our workers
# are still being stopped.
ready 0
beat 0.0
time 3.0
worker 1 exits 1
----
0  HELD: Beat
0  RUNNING: Start round 0
3  STOPPING: Record worker 1 (1) · End failed · Signal 15

# Stopped by us: no failure of its own.
time 3.1
worker 0 exits -15
reaped
----
3.1  STOPPING
3.1  JOINING: Join

ready 1
beat 3.0
----
3.1  HELD: Beat
3.1  RUNNING: Start round 1
