# leaving voids nothing under way
# L14: a join is carried out by a node that leaves
world nodes=2 min=2 max=2
start a
pass 1
drain a
