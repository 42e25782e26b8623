# no last call in the first round
# V6: complete without a last call, with 1 of up to 2 nodes
world nodes=2 max=2
