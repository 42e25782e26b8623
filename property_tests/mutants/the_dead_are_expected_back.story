# the dead are expected back
# S8: a#2 join: two incarnations of one slot are seated: ['a#1', 'a#2']
world nodes=1 max=1
start a
start a
