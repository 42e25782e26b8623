# sightings survive a change of life
# L3: b throws out a, whose heartbeats came in time
world nodes=2 max=1
start a
start b
pass 2
empty
