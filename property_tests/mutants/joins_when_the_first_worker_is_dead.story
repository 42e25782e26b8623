# joins when the first worker is dead
# G2: joins while workers [1] live: STOPPING + Reaped(at=1.0120000029999998) -> JOINING: (Join(),)
world nodes=2 max=2 workers=2 last_call=0
start a
start b
