# a later start that has come since is watched
# R12: round 0 was lost while b was well: it has no seat
world nodes=2 max=1
start a
start b
pass 1
start b
empty
