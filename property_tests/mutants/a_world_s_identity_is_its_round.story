# a world's identity is its round
# B4: 1 failures, but workers failed in rounds []
world nodes=1 max=1
start a
pass 1
fail a
