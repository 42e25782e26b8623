# a later start that has come since is watched
# L9: no rest 40.00 s after start, start-stranger, at most 39.5 s: round 0 complete [a#2:in]
world nodes=1 max=1 seed=2 interval=20
start a
start-stranger a
