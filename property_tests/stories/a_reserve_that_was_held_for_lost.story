# Found by L2 and L9, worlds with reserves: b, a reserve, was not heard, and was evicted. It joined again while its round went on, and gave
# up after the time for a join, though its job lived. It waits for the next round as a spare does.
world nodes=2 max=2 backend=lease interval=20 join=600 overdue=240 fence=60 reserves=2
start a
start b
pass 1
cut-out b 160
pass 100
