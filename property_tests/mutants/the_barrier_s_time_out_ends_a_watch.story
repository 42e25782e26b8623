# the barrier's time-out ends a watch
# O2: a#1 gives watch up too early
world nodes=2 max=2 barrier=2
start a
pass 5
cut-out a 5
start b
pass 5
