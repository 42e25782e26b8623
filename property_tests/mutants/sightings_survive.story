# sightings survive
# L3: a throws out b, whose heartbeats came in time
world nodes=2 max=1
start a
start b
pass 0.1
outage 5
pass 10
