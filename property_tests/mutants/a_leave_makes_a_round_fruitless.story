# a leave makes a round fruitless
# B7: a leave: 0 fruitless rounds became 1 by an end because left
world nodes=1 max=1 give_up=2
start a
pass 1
drain a
