# reaped is taken for left
# O3: a#1 ends before the register knows that it leaves
world nodes=1 max=1
start a
pass 2
drain a
