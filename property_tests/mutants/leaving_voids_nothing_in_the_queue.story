# leaving voids nothing in the queue
# L14: a end is carried out by a node that leaves
world nodes=1 max=1
start a
pass 1
cut a 3
fail a
pass 0.5
drain a
