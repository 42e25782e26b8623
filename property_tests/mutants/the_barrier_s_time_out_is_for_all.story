# the barrier's time-out is for all
# O5: a#1 leaves, and nobody has asked it to
world nodes=2 max=1 seed=1 barrier=2 fence=3
start a
start b
pass 5
