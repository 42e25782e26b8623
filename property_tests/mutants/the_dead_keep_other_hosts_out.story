# the dead keep other hosts out
# O19: a#1 join waits until 8.002, and something is due at 7.004 (now 7.004)
world nodes=2 max=1
start-local b
pass 1
