# Found by seeds (L10), run 1943 of elastic simulate --nodes=3 --backend=lease --seed 0x8c9d81b0. Clocks run a hundredth apart, at spans of
# minutes. The judge's bound was in seconds of no clock's.
world nodes=2 max=1 backend=lease seed=2 drift=0.01 interval=20 join=600 overdue=240 fence=60 checks=1
start a
start b
pass 120
crash b
outage 160
pass 600
