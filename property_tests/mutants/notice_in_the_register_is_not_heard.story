# notice in the register is not heard
# L9: no rest 23.00 s after notice, start, at most 22.6 s: round 0 complete [b:leaving a:in]
world nodes=2 max=2 seed=5
start a
start b
notice b 1
