# other restarts are no other limits
# O2: b#1 takes a seat in a job of other limits
world nodes=2 max=1
start a
start-other b
