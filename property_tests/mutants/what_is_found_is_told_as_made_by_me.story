# what is found is told as made by me
# L12: a#1 says that it has begun Life(nonce='b@7', epoch=1), which another one has
world nodes=2 min=2 max=2 seed=2
start a
pass 1
older 1
