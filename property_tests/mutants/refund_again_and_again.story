# refund again and again
# B2: a join: 1 failures became 0 within round 1
world min=1 max=3 restarts=3
start a
start b
start c
pass 3
fail b
crash c
pass 20
