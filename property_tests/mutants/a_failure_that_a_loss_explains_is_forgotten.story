# a failure that a loss explains is forgotten
# B7: a join: 0 fruitless rounds became 0 within a round
world min=1 max=3 restarts=3 give_up=3
start a
start b
start c
pass 3
fail b
crash c
pass 20
