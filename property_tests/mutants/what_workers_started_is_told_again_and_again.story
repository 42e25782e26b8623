# what workers started is told again and again
# L6: the timer of b passes without end
world nodes=4 max=2 workers=2 seed=4 checks=1 echoes=1
start a
start b
start c
start d
pass 1
fail c
pass 1
