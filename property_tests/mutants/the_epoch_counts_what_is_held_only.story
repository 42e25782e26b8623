# the epoch counts what is held only
# R4: a join: epoch 2 does not rise
world nodes=2 max=2 last_call=0 upscale=0
start a
start b
pass 0.01
empty
