# the stacks of nodes that are gone are waited for
# O20: a#2 waits for the stacks of (Node(slot='a', incarnation=1),), not of ()
world nodes=1 max=1 give_up=1
start a
pass 1
crash a
