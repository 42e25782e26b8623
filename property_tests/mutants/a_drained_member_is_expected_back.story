# a drained member is expected back
# V15
world
start a
start b
start c
pass 1
notice b 20
pass 1
fail a
pass 5
