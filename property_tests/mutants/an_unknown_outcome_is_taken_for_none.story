# an unknown outcome is taken for none
# S15: a#1 is seated after it had left
world nodes=1 max=1
start a
late-write a 2
pass 1
drain a
