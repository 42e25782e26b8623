# groups are in the order of their names
# S20: b#1 has lower ranks than c#1, whose groups, place or last order are lower
world min=3 unlike=3
