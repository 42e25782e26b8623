# dead while heard
# L3: a throws out b, whose heartbeats came in time
world nodes=2 min=2 max=2
