# Found by seeds (L10), run 444 of --seed 99: d is slow, and its write is refused. The refused write took so long that two reads of
# heartbeats lay too far apart, and all sightings started afresh: the dead kept their seats for a TTL more.
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
