# Found by S20 in a soak: ten nodes of three groups came by one write. The judge gave all of them one number, and took the places of one
# group's nodes for those of another.
world nodes=12 min=12 max=12 unlike=3
start a
start b
start c
start d
start e
start f
start g
start h
start i
start j
start k
start l
pass 1
crash b
pass 3600
