# a spare has an end
# L11: b reads the register 4 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 max=1 join=15
start a
start b
pass 30
