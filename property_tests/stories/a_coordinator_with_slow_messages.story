# Found by L10: a coordinator with slow messages (0.6 s each way) reads the heartbeats too seldom, so its sightings start afresh, and the dead
# keep their seats. Up to 0.45 s, where a question and a look take less than two heartbeats, it throws them out in time.
world nodes=5 max=1 seed=2 links=1
start a
start b
start c
start d
start e
pass 1
slow d 0.45
crash a
crash b
crash c
pass 16
