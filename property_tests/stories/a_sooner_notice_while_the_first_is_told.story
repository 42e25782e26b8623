# Found by seeds (O2), run 7,115 of `--nodes=2 --backend=cas --steps=1000000 --seed 0xf729b6ee`: a tells of its first notice, and no
# answer comes in time. It gives that up 6 s later. The judge counted from the second notice, which had come meanwhile.
world nodes=1 max=1
start a
pass 1
slow a 1
notice a 30
pass 6
notice a 5
