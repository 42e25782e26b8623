# a loss makes no round fruitless
# B7: a#2 join: 0 fruitless rounds became 0 by an end because lost
world nodes=1 max=1 give_up=3
start a
pass 1
crash a
