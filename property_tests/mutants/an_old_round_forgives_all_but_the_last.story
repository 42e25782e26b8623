# an old round forgives all but the last
# B7: a#2 watch: a round made progress, and 1 fruitless ones of 3 count
world nodes=1 max=1 give_up=3
start a
pass 1
crash a
