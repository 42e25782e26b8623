# upscale at once
# O4: a#1 ends the round for a newcomer that it has not seen for 1 s
world nodes=2 max=2
start a
start b
cut b 1
pass 1
