# end ends whichever round stands
# S7: a end: version 3 after 3
world nodes=1 max=1
start a
pass 1
lose-reply a
fail a
start a
pass 1
