# a node watches itself
# L16: a#1 has links to [Node(slot='a', incarnation=1)], not to []
world nodes=1 max=1 links=1
