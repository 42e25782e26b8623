# who wakes keeps its suspects
# L17: a#1 suspects [Node(slot='b', incarnation=1)], whose links did not break, or which live
world nodes=2 max=1 links=1
start a
start b
pass 1
crash b
pass 0.01
pause a 10
