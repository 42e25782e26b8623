# a fenced round is not fruitless
# B7: a join: 0 fruitless rounds became 0 by an end because fenced
world nodes=1 max=1 fence=3 give_up=2
start a
pause-loop a 5
