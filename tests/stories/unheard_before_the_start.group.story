# Found by the simulator (S9 strong): a node that is complete in a world was cut off from the store before its workers started.
# When it is heard again, the others may hold it for dead already, and their write may be under way: starting now, its workers
# would live beside those of the next world. It joins again instead, which ends the round and voids that write.
fence 3.0

begin
beat 0.0
ready 0
time 4.0
beat 4.0
----
0  JOINING: Join
0  JOINING
0  HELD: Beat
4  JOINING: Join

ready 0
beat 4.0
----
4  HELD: Beat
4  RUNNING: Start round 0
