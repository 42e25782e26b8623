# no promotion
# V4: a join: a#1 wait while there is room for 1
world nodes=1 max=1
