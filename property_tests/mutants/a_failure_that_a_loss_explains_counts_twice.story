# a failure that a loss explains counts twice
# B7: a#2 join: fruitless rounds [0, 0], and this is round 1
world nodes=1 max=1 give_up=3
start a
pass 1
crash a
