# dead after half a TTL
# L3: b throws out a, whose heartbeats came in time
world nodes=2 max=1
start a
start b
pass 1
crash a
