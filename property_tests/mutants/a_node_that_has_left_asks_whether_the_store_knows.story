# a node that has left asks whether the store knows
# L18: a#1 hears Told: it takes itself to be known to leave, or does not
world nodes=1 max=1
start a
drain a
