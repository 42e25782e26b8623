# a policy outlives its world
# V13: a watch: a policy of a world that does not stand
world nodes=2 max=2 seed=1
start b
pass 1
crash b
