# only the coordinator is watched
# L10: a#1, b#1 died 14.00 s ago: round 0 complete [a:in b:waiting c:waiting]
world max=1
start a
start b
pass 1
start c
crash a
crash b
