# a snapshot is edited as it is
# L11: a writes 3 times in a round, in which it was shown 1 versions and prompted 0 times
world nodes=1 max=1
start a
pass 1
older 0.1
