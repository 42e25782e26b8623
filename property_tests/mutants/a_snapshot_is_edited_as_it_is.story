# a snapshot is edited as it is
# R8: Complete(round=0) of a#1 changes what another store had written
world nodes=2 max=2
start a
pass 1
older 0.1
