# fleeing is charged as a failure
# B4: 1 failures, but workers failed in rounds []
world nodes=1 max=1 seed=2 drift=0.0001 fence=3
start a
cut-out a 1
pass 1
