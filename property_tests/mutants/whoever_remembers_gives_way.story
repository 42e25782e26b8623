# whoever remembers gives way
# R13: a forgets job a@0, which the store has lost
world nodes=1 max=1
start a
pass 1
empty
