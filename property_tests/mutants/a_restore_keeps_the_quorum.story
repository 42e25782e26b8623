# a restore keeps the quorum
# V5: a join: quorum since version 1 with 0 of 1 nodes
world nodes=2 max=2
start a
pass 1
empty
