# upscale never
# L2: after 100.5 s without faults: d (joining); round 0 complete [a:in b:in d:waiting]
world nodes=4 last_call=0.5
start a
start b
pass 1
start c
start d
