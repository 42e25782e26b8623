# done is not bound to its round
# S7: a done: version 3 after 3
world nodes=2 max=1 attempts=3
start a
start b
pass 1
late-write a 5
succeed a
cut-out a 5
pass 5
