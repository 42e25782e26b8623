# a round that I fled from is not ended
# O19: a#1 join waits until 63.002, and something is due at 3.002 (now 3.002)
world nodes=1 max=1 fence=3
start a
cut-out a 2
pass 2
