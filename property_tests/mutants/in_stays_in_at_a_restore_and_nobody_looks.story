# in stays in at a restore, and nobody looks
# V5: a join: quorum since version None with 1 of 1 nodes
world nodes=2 max=2
start a
pass 1
empty
