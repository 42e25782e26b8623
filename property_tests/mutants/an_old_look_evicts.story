# an old look evicts
# L3: c throws out a, whose heartbeats came in time
world max=2
start a
start b
start c
pass 2
cut a 10
pass 5
outage 5
pass 5
