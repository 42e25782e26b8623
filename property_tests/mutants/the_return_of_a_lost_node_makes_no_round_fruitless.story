# the return of a lost node makes no round fruitless
# B7: the round of 1 fruitless ones before ended for b#1
world nodes=2 max=2 backend=lease seed=1 attempts=3 last_call=0 give_up=2
start b
start a
pass 1
cut-out b 1
pass 1
