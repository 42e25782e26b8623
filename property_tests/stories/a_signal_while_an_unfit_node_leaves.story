# Found by O3, run 2,139 of seed 99: a node that is unfit waits for a store that is away, to leave in order. A signal ends that wait. The judge
# took the first signal for the one that asks it to leave.
world nodes=1 max=1 checks=1
start a
unfit a
outage 1
pass 1
drain a
