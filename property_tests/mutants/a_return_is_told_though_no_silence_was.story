# a return is told though no silence was
# L12: b#1 tells twice that the store answers
world nodes=2 max=1
start a
start b
pass 1
outage 1
