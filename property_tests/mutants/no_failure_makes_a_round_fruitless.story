# no failure makes a round fruitless
# B7: a end: 0 fruitless rounds became 0 by an end because failed
world nodes=1 max=1 give_up=3 counts_failures=1
start a
pass 1
fail a
