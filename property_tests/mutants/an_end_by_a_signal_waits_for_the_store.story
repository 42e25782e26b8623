# an end by a signal waits for the store
# O20: a#1 ends by Stopped(signum=15), and waits for the store, or does not
world nodes=1 max=1
start a
drain a
