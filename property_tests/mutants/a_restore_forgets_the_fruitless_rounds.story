# a restore forgets the fruitless rounds
# R7: b#2 watch: what is restored is not what was held
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 3
empty
pass 3
