# a rank policy is ignored
# S20: a#1 has lower ranks than b#1, whose groups, place or last order are lower
world nodes=2 max=2 seed=4 unlike=3 last_call=0
start a
start b
