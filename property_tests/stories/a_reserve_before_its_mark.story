# Found by O11, 1 run of 1,000: the store was full, so c had not gone on record as a reserve. It took its idle workers for hung.
world reserves=2 hang=4
start a
start b
start c
slow c 0.1
pass 1
full 5
pass 5
