# what is owed is forgotten
# S15: a#1 is seated after it had left
world nodes=1 max=1
start a
late-write a 3
pass 1
drain a
