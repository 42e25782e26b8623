# seeded without a new life
# R3: a watch: a world was completed in this life, which still counts for what it was made from
world nodes=1 max=1
start a
pass 1
empty
