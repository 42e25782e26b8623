# Found by seeds (S18), run 1781 of elastic simulate --nodes=5 --backend=lease --seed 0xeb1e142d. The loop of a stood still while the others
# began another life of the register. The judge forgot that when the loop went on, just before a heard of it.
world nodes=4 max=4 first_target=3
start a
start b
start c
start d
pass 1
empty
pause-loop a 30
pass 30
