# every silence from the second on is told
# L12: a#1 tells twice that the store is silent
world nodes=1 max=1
start a
cut-in a 5
pass 5
