# a drained node has all its grace
# O8
world
start a
start b
pass 3
hang b
notice b 2
pass 20
