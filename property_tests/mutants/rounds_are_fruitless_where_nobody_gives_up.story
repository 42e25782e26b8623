# rounds are fruitless where nobody gives up
# B7: b#2 join: 0 fruitless rounds became 1 by an end because lost
world nodes=2 max=1 seed=2
start a
start b
start b
