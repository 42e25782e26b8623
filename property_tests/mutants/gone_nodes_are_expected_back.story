# gone nodes are expected back
# S8: a#2 join: two incarnations of one slot are seated: ['b#1', 'b#2', 'a#2']
world nodes=2 max=2
start b
start a
pass 1
succeed b
start b
start a
