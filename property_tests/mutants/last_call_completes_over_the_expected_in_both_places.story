# last call completes over the expected, in both places
# V1: c join: complete while b#1 are still expected
world min=2 seed=5 last_call=0 upscale=0
start a
start b
start c
