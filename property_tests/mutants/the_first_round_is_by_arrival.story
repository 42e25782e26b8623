# the first round is by arrival
# S20: b#1 has lower ranks than a#1, whose groups, place or last order are lower
world nodes=2 min=2 max=2 seed=2
