# a proposal costs the sightings
# L10: c#1 died 16.24 s ago: round 1 open [a:expected b:expected]
world nodes=3 min=1 max=3 helping=1
start a
start b
start c
pass 1
slow a 0.6
crash c
pass 5
succeed a
pass 16
