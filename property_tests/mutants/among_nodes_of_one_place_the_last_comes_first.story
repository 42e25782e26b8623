# among nodes of one place the last comes first
# S20: b#1 has lower ranks than a#1, whose groups, place or last order are lower
world nodes=2 max=2 last_call=0
start a
start b
