# only the last world is remembered as run
# R10: a takes over 0 failures, and knew of 1
world nodes=2 max=2 seed=2624737845
start a
start b
pass 2.5
gap a
start b
pass 3.82
fail b
pass 0.02
start a
late-reply b 1
pass 0.001
older 1
