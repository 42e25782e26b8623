# two incarnations enter
# S8: two incarnations of one slot are seated
world nodes=4 min=4 max=4 helping=1
start a
start b
pass 0.1
crash b
start b
