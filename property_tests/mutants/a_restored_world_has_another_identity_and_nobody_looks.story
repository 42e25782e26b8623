# a restored world has another identity, and nobody looks
# R3: a watch: a world was completed in this life, which still counts for what it was made from
world nodes=1 max=1
start a
pass 1
empty
