# refund again and again
# B2: b join: 1 failures became 0 within round 1
world nodes=2 max=2
start a
start b
pass 1
fail b
crash a
