# Found by seeds, run 728 of `elastic simulate --seed 7` (L7): a fenced node joined again, and its loop stood still for most of the
# outage.
world nodes=1 max=1 seed=2 drift=0.01 join=15 fence=3
start a
pass 1
outage 10
pass 7.5
pause-loop a 7.5
