# a refused write costs the sightings
# L10: a#1, b#1 died 15.42 s ago: round 1 complete [b:in c:waiting e:waiting]
world nodes=6 max=1 seed=1 links=1
start a
start b
start c
pass 1
slow c 0.6
pass 2
crash a
crash b
pass 8.4
start e
pass 30
