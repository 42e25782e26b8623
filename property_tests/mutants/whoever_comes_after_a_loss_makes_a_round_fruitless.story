# whoever comes after a loss makes a round fruitless
# B7: the round of 1 fruitless ones before ended for a#1
world nodes=2 max=2 last_call=0 give_up=2
start a
cut a 1
pass 1
start b
start b
