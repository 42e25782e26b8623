# the first cause is checked no more
# G7: a#1 joins, and no check has found it fit since a failure of its own
world nodes=1 max=1 checks=1
start a
pass 1
fail a
