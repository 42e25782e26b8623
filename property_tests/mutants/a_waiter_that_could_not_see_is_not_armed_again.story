# a waiter that could not see is not armed again
# S9 strong: workers of a#1 still run in round 2 while those of c#1 start in 3
world fence=3
start a
start b
pass 1
cut-in a 5
start c
slow c 1
pass 10
