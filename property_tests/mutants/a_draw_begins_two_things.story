# a draw begins two things
# B5: a#1 does not charge the failure of its worker in round 0
world nodes=1 max=1
start a
pass 1
fail a
