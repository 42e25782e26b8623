# an absent reserve is expected back
# S8: a#2 join: two incarnations of one slot are seated: ['b#1', 'b#2', 'a#2']
world nodes=2 max=2 reserves=2
start a
start b
pass 1
start b
start a
