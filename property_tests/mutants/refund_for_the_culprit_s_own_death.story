# refund for the culprit's own death
# B2: a join: 1 failures became 0 within round 1
world nodes=6 max=1
start f
pass 1
late-write f 2
fail f
pass 2
crash f
