# lingers whatever it learns
# L6: b asks without end
world nodes=2 max=1 seed=3
start a
start b
pass 1
succeed b
pass 0.01
empty
start a
