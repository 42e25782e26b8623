# a late answer is a lost store
# L2: b is told that the store was lost, but it remembers all
world min=2 seed=1
