# who waits loses its order when a world is completed
# S5: a join: order 4 is not below the next one, 4
world nodes=4 unlike=2 last_call=0
start a
start b
start c
start d
