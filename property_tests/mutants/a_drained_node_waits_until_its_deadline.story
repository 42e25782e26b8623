# a drained node waits until its deadline
# O8
world
start a
start b
pass 3
hang b
notice b 10
pass 20
