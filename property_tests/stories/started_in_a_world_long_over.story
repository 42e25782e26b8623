# Found in the soak, 1 of 29,000 runs (S9 strong): e was told of its world, and then heard nothing for so long that the world was over
# and the next ran without it. Its next heartbeat was acknowledged, and it started its workers.
world nodes=5 min=2 backend=lease seed=1442770375 drift=0.0001 last_call=0.5 overdue=12 upscale=0 grace=1 fence=3
start b
start c
pass 0.6
cut-in b 8
pass 1
start e
pass 6.02
slow e 1.5
pass 0.3
start d
late-write d 8
pass 2.02
cut-in b 1
cut-in e 8
pass 14.02
cut d 12
pass 5
