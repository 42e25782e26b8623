# silence begins when it is heard of
# L18: a#1 hears StoreSilent: it knows another register, or another silence, than it was told
world nodes=1 max=1
start a
full 1
pass 1
