# Found by R12, two nodes (run 9136 of its seed): the store lost its world while it was away, and the time that it was away did not count.
world nodes=1 max=1
start a
pass 1
outage 5
late-reply a 2
empty
pass 10
