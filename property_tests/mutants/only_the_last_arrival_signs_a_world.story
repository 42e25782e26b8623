# only the last arrival signs a world
# V13: a#2 completes round 1, and does not sign its world
world nodes=1 max=1 seed=1
start a
start a
