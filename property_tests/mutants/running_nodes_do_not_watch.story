# running nodes do not watch
# L9: no rest 16.00 s after start, at most 15.6 s: round 0 complete [a:in b:waiting]
world nodes=2 max=2 last_call=0
start a
start b
