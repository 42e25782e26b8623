# a refused write costs the sightings
# L10: a#1 died 16.00 s ago: round 0 complete [d:in a:waiting e:waiting]
world nodes=5 max=1 seed=2 links=1
start a
start b
start c
start d
start e
pass 1
slow d 0.6
crash a
crash b
crash c
pass 16
