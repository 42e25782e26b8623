# the next newcomer waits for the sooner of two spans
# O19: a#1 watch waits until 2.96, and something is due at 3.054 (now 2.06)
world upscale=0
start a
start b
cut a 1
pass 1
