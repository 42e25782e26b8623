# a waiter that could not see is not armed again
# L11: a waits, and nothing waits for the next change
world fence=3
start a
start b
pass 1
cut-in a 5
start c
slow c 1
pass 10
