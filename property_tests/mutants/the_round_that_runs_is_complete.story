# the round that runs is complete
# L18: a#1 hears Seen: it knows another register, or another silence, than it was told
world nodes=2 max=2
