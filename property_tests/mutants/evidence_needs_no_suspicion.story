# evidence needs no suspicion
# L17: a#1 suspects [Node(slot='b', incarnation=1)], whose links did not break, or which live
world nodes=2 max=2 links=1
start a
start b
pass 1
crash b
empty
