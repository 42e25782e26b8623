# an old write lands in a store that is empty
# R9: b#1 begins Life(nonce='b@0', epoch=1), which had begun before
world nodes=2 max=2 seed=2
start b
pass 2
older 2
