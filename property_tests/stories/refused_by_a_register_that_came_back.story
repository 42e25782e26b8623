# Found by L11, run 1,756 of seed 0x9e11: twice in 10 ms the store came back as an older copy. A write was refused, and the answer showed what its
# node held already. Nothing had counted the loss as a cause of the next write.
world nodes=4 max=1 seed=3
start a
start b
start c
start d
pass 0.02
older 0.01
pass 0.01
older 1
