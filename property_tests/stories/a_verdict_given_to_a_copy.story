# Found in the soak, 1 run of 14,000 (R10): the store was a copy, and who held nothing restored it over itself and closed it, before a could
# give back what it knew. A verdict is final: that a's failure is not in it is no breach.
world nodes=1 max=1 seed=1
start a
pass 1
fail a
pass 1
older 1
cancel
