# spans outlive their fact
# O4: d#1 waits no longer for the expected, 7.048 s after it saw the round
world nodes=4 last_call=0.5 fence=3
start a
start b
pass 1
cut-in a 8
pass 1
start c
pass 6.02
slow c 1
start d
late-write d 2
pass 10
