# a heartbeat from before the end of the link is a sign of life
# L17: b#1 suspects [Node(slot='a', incarnation=1)] no longer, which have shown no sign of life
world nodes=2 max=1 links=1
start a
start b
pass 1
crash a
