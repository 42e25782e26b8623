# workers on their way are not fenced
# L6: the timer of a passes without end
world nodes=2 min=2 max=2 alone=1 fence=3 restarts=3
start a
start b
pass 1
drain b
pass 0.5
cut a 20
pass 10
