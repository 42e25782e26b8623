# goes on before it has restored
# O19: a#1 watch waits until 1.006, and something is due at 1.001 (now 1.001)
world nodes=2 max=2
start a
start b
pass 1
empty
