# lingers whatever it learns
# L11: b reads the register 3 times in a round, in which it was shown 1 versions and prompted 0 times
world nodes=2 max=1 seed=3
start a
start b
pass 1
succeed b
pass 0.01
empty
start a
