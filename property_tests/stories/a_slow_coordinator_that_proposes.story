# Found beside L10 (a twin of "a slow coordinator whose write is refused"): a is slow, and proposes that it is done. The answer to
# that did not count as one. So two reads of heartbeats lay too far apart, all sightings started afresh, and dead c kept its seat.
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
