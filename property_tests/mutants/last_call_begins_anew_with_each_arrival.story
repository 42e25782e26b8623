# last call begins anew with each arrival
# V11: b join: the quorum moved from version 1 to 2
world nodes=2 max=2
start a
start b
