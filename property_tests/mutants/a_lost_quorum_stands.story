# a lost quorum stands
# V5: a leave: quorum since version 1 with 0 of 1 nodes
world nodes=2 max=2
start a
pass 1
drain a
