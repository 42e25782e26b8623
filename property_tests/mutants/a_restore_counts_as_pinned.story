# a restore counts as pinned
# R3: a watch: a world of Life(nonce='a@0', epoch=1) stands, and this life no longer counts for what it was made from
world nodes=1 max=1
start a
pass 1
empty
