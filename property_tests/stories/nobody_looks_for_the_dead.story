# Found by seeds (L2): c dies, the others are done and leave the exit barrier by its time-out; nobody looked for the dead.
world nodes=5 min=3 max=4 restarts=8 backend=lease join=15 barrier=2 grace=1
start e
start c
pass 0.02
crash c
