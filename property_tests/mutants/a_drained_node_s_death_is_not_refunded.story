# a drained node's death is not refunded
# B2: the loss of a member is charged as the failure that it led to
world min=3 seed=8
start a
start b
start c
pass 1
notice b 1
fail c
crash b
pass 5
