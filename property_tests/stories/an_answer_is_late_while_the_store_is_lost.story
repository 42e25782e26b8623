# Found by R12 in a soak: the answer to a's look is late while the store is lost, so a hears of the loss when its fence has passed.
world nodes=2 max=1 fence=3
start a
start b
pass 1
late-reply a 2
pass 1
older 1
pass 5
