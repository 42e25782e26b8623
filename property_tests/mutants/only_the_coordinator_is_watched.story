# only the coordinator is watched
# O18: c#1 reads the heartbeats of a#1, not of a#1, b#1
world max=2
start a
start b
start c
pass 2
pause a 10
