# everybody watches the coordinator only
# O18: a#1 reads the heartbeats of a#1, not of
world nodes=2 max=2
start a
start b
pass 1
crash b
