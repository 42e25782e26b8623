# a spare waits where a lost store has no seat for it
# O19: b#1 join waits until 61.003, and something is due at 1.003 (now 1.003)
world nodes=2 max=1
start a
start b
pass 1
empty
pass 4
