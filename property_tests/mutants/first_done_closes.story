# first done closes
# S14: a join: closed as succeeded while workers of a#1 still run
world nodes=2 max=2
