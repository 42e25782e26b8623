# a snapshot of what i hold is edited and the store takes it
# R8: Done(round=0) of a#1 changes what another store had written
world nodes=1 max=1
start a
pass 1
older 0.1
