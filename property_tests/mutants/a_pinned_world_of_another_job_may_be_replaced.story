# a pinned world of another job may be replaced
# R6: a watch: a world of another job, b#2@74, is replaced
world nodes=2 max=1 seed=1
start a
start b
pass 5
older 5
start b
