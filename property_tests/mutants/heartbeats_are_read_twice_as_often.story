# heartbeats are read twice as often
# L11: a reads heartbeats 6 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 max=2
start a
start b
pass 12
