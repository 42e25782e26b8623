# a lost register is not restored
# O19: a#1 watch waits until 35.001, and something is due at 5.001 (now 5.001)
world nodes=2 min=1 max=2
start a
start b
pass 5
hang a
hang b
empty
fail a
fail b
pass 20
