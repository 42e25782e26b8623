# a spare waits where a lost store has no seat for it
# R12: round 0 was lost while b was well: it has no seat
world nodes=2 max=1
start a
start b
pass 1
empty
pass 4
