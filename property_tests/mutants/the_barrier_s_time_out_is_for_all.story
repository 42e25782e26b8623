# the barrier's time-out is for all
# O19: a#1 watch waits until 53702, and something is due at inf (now 53700)
world nodes=2 max=1 seed=1 barrier=2 fence=3
start a
start b
pass 5
