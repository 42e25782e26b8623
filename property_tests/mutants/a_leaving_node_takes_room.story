# a leaving node takes room
# V4: somebody waits, and only 3 of 4 seats are taken
world nodes=6 max=4 workers=2 seed=1954592473 drift=0.01 unlike=2 links=1
start a
start b
start c
start d
start e
start f
pass 2.5
cut-out d 4
notice c 10
pass 10
