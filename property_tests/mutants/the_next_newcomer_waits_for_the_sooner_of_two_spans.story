# the next newcomer waits for the sooner of two spans
# O4: b#1 ends the round for a newcomer that it has not seen for 10 s
world upscale=0
start a
start b
cut a 1
pass 1
