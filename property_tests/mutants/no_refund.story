# no refund
# B2: the loss of a member is charged as the failure that it led to
world nodes=2 max=2
start a
start b
pass 1
fail b
crash a
