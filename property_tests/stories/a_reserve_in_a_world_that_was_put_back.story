# Found by O6, run 3307 of `elastic simulate --nodes=4 --backend=lease --seed 0x841ea5f4`: the workers of d, a reserve, moved into the next
# world, when another node put the last one back, in which d was a reserve. d ended that round as one whose workers were gone. They lived.
world nodes=4 seed=1 links=1 reserves=2 alone=2
start a
start b
start c
start d
pass 0.02
start b
older 1
pass 0.02
outage 2
older 1
pass 2
