# a completion does not pin
# R3: a join: a world was completed in this life, which still counts for what it was made from
world nodes=1 max=1
