# a heartbeat under a lease must move
# L3: b throws out a, whose heartbeats came in time
world nodes=2 max=1 backend=lease
start a
start b
pass 10
