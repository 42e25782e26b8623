# a death with the store is charged
# B2: the loss of a member is charged as the failure that it led to
world nodes=2 min=2 max=2
start a
start b
pass 1
crash a
empty
fail b
pass 0.02
start a
