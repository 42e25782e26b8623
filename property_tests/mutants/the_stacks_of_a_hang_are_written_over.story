# the stacks of a hang are written over
# O12: a#1 puts stacks of the rounds [0] on record in a step of round 0
world nodes=1 max=1 hang=4
start a
pass 1
hang a
pass 5
