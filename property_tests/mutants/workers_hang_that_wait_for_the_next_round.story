# workers hang that wait for the next round
# O11: b blames rank 1, and its world moves
world nodes=2 min=2 max=2 alone=2 hang=9
start a
start b
pass 1
drain a
pass 5
outage 5
pass 5
