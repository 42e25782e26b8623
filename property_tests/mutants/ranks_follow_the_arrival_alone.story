# ranks follow the arrival alone
# S20: b#1 (place (2,)) has lower ranks than a#1 (place (0,))
world min=2 max=2 unlike=3
start b
