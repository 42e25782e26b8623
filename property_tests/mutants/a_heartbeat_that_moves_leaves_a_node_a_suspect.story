# a heartbeat that moves leaves a node a suspect
# L17: b#1 suspects [Node(slot='a', incarnation=1)], whose links did not break, or which live
world nodes=2 max=1 links=1
start a
start b
pass 0.1
refuse a 1
pass 5
