# over is nothing to who is held
# L2: c has found no world, but all has been well for long
world min=3 seed=1
start a
pass 1
crash a
outage 1
