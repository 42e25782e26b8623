# places count in the first round only
# S20: b#1 has lower ranks than c#1, whose groups, place or last order are lower
world max=2 unlike=2 last_call=0
start b
start c
