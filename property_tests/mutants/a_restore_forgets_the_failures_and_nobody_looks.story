# a restore forgets the failures, and nobody looks
# R10: a takes over 0 failures, and knew of 1
world nodes=1 max=1
start a
pass 1
fail a
pass 1
empty
