# only the coordinator is watched
# L11: c reads heartbeats 15 times in a round, in which it was shown 4 versions and prompted 0 times
world max=2
start a
start b
start c
pass 2
pause a 10
