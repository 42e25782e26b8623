# an acknowledgement counts before the register is shown
# L18: a#1 takes the acknowledgement of None, or leaves its own one
world nodes=1 max=1
start a
late-reply a 1
pass 1
