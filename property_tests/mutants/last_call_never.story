# last call never
# O19: a#1 join waits until 60, and something is due at 2.004 (now 0.004)
world nodes=2 max=2
