# no record without a signal
# O12: a#1 puts stacks of the rounds [] on record in a step of round 0
world nodes=1 max=1
start a
pass 1
fail a
