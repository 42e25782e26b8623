# among nodes of one place the last comes first
# S20: b#1 (place (0,)) has lower ranks than a#1 (place (0,))
world nodes=2 min=2 max=2
