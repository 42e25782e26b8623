# a world tells its version for its failures
# S2: the world of round 0 is another one for a#1
world nodes=4 seed=1
start a
start b
start c
start d
