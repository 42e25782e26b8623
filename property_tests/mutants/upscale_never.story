# upscale never
# O19: a#1 watch waits until 2.007, and something is due at 2.004 (now 1.009)
world nodes=4 last_call=0.5
start a
start b
pass 1
start c
start d
