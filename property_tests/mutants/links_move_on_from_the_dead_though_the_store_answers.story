# links move on from the dead though the store answers
# L16: a#1 has links to [Node(slot='b', incarnation=1), Node(slot='b', incarnation=2)], not to [Node(slot='b', incarnation=2)]
world nodes=2 min=2 max=2 links=1 reserves=1
start a
start b
pass 1
crash b
