# a draw begins two things
# L14: a end is neither answered nor voided
world nodes=1 max=1
start a
pass 1
fail a
