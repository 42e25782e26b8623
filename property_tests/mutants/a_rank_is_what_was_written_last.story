# a rank is what was written last
# R10: b takes over 0 failures, and knew of 1
world nodes=2 min=2 max=2 seed=1
start a
start b
pass 2
fail b
crash a
pass 1
older 1
