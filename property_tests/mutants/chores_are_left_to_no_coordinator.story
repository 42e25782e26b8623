# chores are left to no coordinator
# O17: b#1 does the coordinator's chore (Complete(round=0)), 3e-09 s after it was due
world min=2
