# what follows is not heard
# L9: no rest 16.00 s after start, at most 15.6 s: round 1 complete [b:in]
world nodes=2 max=2 last_call=0
start a
start b
