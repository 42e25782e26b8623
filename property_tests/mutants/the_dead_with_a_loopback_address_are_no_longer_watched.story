# the dead with a loopback address are no longer watched
# L11: d reads heartbeats 11 times in a round, in which it was shown 1 versions and prompted 0 times
world nodes=4 max=2 backend=lease seed=1 links=1
start a
start b
start c
pass 1
start a
crash b
crash c
start-local d
pass 10
