# a look is always due
# L11: a reads heartbeats 4 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 min=2 max=2
