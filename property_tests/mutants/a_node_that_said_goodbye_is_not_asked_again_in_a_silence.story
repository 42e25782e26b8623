# a node that said goodbye is not asked again in a silence
# L16: a#1 does not ask [Node(slot='b', incarnation=1)] again, which said goodbye, and the store is silent
world nodes=2 max=1 seed=2 links=1
start a
start b
pass 1
outage 1
