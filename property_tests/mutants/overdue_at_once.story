# overdue at once
# O4: b#1 waits no longer for the expected, 0.202 s after it saw the round
world min=2 seed=2346917498 last_call=0 fence=3
start a
start b
start c
