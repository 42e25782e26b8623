# an old round forgives nothing
# S7: a watch: version 4 after 4
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 12
