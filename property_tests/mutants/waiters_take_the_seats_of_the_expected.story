# waiters take the seats of the expected
# V3: a watch: 3 seats for at most 2 nodes
world max=2 last_call=0
start a
start b
start c
