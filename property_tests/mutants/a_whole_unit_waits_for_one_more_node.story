# a whole unit waits for one more node
# L9: no rest 19.00 s after start, at most 18.8 s: round 0 complete [a:in b:in c:waiting d:waiting]
world nodes=4 min=2 max=4 unit=2 last_call=0
start a
start b
start c
start d
