# a failure makes a round fruitless though none counts
# B7: a end: a round is fruitless that ended because failed
world nodes=1 max=1 give_up=1
start a
pass 1
kill-worker a
