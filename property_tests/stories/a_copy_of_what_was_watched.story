# Found in the soak, 1 run of 2,000 (L2): a had missed a push and waited on an old version when the store was given back a copy of just that:
# a waited for it to change, and nobody restored it.
world nodes=1 max=1
start a
gap a
pass 1
fail a
pass 1
older 1
