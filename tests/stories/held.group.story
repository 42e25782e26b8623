# F1: the workers do not start on an old heartbeat, or they might be fenced at once. TTL/4 is 1.25 s.
ready 0
time 2.0
beat 0.5
----
0  HELD: Beat
2  HELD

beat 1.9
----
2  RUNNING: Start round 0
