# another life is taken for the same
# L11: a reads the register 3 times in a round, in which it was shown 1 versions and prompted 0 times
world nodes=1 max=1
start a
pass 1
empty
