# upscale never
# L9: no rest 17.00 s after start, at most 16.3 s: round 0 complete [a:in b:in c:waiting d:waiting]
world nodes=4 last_call=0.5
start a
start b
pass 1
start c
start d
