# open is open whatever the round
# O4: b#1 waits no longer for the expected, 0.696 s after it saw the round
world nodes=4 max=4 fence=3
start a
start b
pass 1
slow b 1
start c
pass 2
cut-in a 5
pass 5
