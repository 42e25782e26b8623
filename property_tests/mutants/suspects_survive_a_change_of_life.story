# suspects survive a change of life
# L17: a#1 suspects [Node(slot='b', incarnation=1)], whose links did not break, or which live
world nodes=2 max=1 links=1
start a
start b
pass 1
older 1
unlink a
