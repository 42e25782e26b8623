# Found in the soak, 1 of 25,000 runs (S9 strong): c's hung workers were being stopped, and outlived the fence by the rest of their grace.
# What stopped them was a flaw too: a write of unknown outcome ended a watch by the exit barrier's deadline.
world nodes=4 max=2 restarts=8 backend=lease seed=1884751820 drift=0.01 join=15 last_call=0 upscale=0 barrier=2 fence=3
start a
start c
pass 0.3
cut-out c 1
pass 2.5
cut-out a 4
pass 7
cut-out a 8
pass 6
hang c
pass 1
cut-out c 4
start d
pass 3.5
