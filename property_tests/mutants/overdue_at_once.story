# overdue at once
# O4: b#1 waits no longer for the expected, 0.0345 s after it saw the round
world seed=2 last_call=0 reserves=2
start a
start b
start c
