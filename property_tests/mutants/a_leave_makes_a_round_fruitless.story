# a leave makes a round fruitless
# B7: a leave: a round is fruitless that ended because left
world nodes=1 max=1 give_up=2
start a
pass 1
drain a
