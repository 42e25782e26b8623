# the dead keep their seats beside a drained member
# O19: a#1 watch waits until 46513, and something is due at 46512 (now 46512)
world nodes=4 min=1 max=4 seed=6
start a
start b
start c
start d
pass 5
hang b
notice b 60
pass 1
crash c
pass 60
