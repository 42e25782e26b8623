# full is one more
# V6: a join: everybody is in and nobody expected, but the round is not complete
world nodes=1 max=1
