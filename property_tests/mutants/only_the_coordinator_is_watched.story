# only the coordinator is watched
# L11: b reads heartbeats 6 times in a round, in which it was shown 3 versions and prompted 0 times
world max=2 seed=30564451 tail=0.5 links=1
start a
start b
start c
