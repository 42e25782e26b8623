# rounds are fruitless where nobody gives up
# B7: b#2 join: fruitless rounds [0], and the job ends after 0
world nodes=2 max=1 seed=2
start a
start b
start b
