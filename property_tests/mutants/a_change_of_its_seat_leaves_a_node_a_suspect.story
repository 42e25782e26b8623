# a change of its seat leaves a node a suspect
# L17: b#1 suspects [Node(slot='c', incarnation=1)], whose links did not break, or which live
world max=2 seed=3 links=1 reserves=2 alone=2
start a
start b
start c
pass 1
refuse a 1
pass 0.02
late-write c 2
pass 2.02
crash c
