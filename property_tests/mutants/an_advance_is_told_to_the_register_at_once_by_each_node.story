# an advance is told to the register at once by each node
# O17: b#1 does the coordinator's chore (Proceed(round=0)), 0 s after it was due
world nodes=2 max=2 give_up=2
start a
start b
pass 1
advance b
