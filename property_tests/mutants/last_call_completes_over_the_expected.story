# last call completes over the expected
# S7: c join: version 6 after 6
world min=2 seed=5 last_call=0 upscale=0
start a
start b
start c
