# only the newcomer's loopback address counts
# O2: a#1 takes a seat beside b#1, and one of them has a loopback address
world nodes=2 max=1
start-local b
pass 1
