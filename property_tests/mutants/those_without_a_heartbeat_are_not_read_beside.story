# those without a heartbeat are not read beside
# O18: b#1 reads the heartbeats of a#1, not of a#1, c#1
world min=3 seed=2
