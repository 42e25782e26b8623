# what the register showed first is what an agent knows
# L18: a#1 hears Seen: it knows another register, or another silence, than it was told
world nodes=1 max=1
