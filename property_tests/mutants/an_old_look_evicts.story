# an old look evicts
# L3: c throws out d, whose heartbeats came in time
world nodes=5 backend=lease seed=176654646 drift=0.01 attempts=3
start a
start b
start c
start d
start e
pause d 4
pass 3.6
crash e
late-write c 1
pass 1
pause d 2.5
pass 2.5
late-write c 2
pass 1
