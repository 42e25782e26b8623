# refund by the next incarnation
# B2: b#2 join: 1 failures became 0 within round 1
world nodes=2 max=2
start a
start b
pass 1
fail a
start b
