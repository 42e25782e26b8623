# Found in the soak, 2 runs of 12,000 with six nodes (S9 strong): a spare was promoted while it was cut off. It was heard again just
# before it was told of its world, and started while those who had seen its silence threw it out.
world nodes=5 max=1 seed=2563553968 fence=3
start a
start b
start c
start d
start e
pass 0.3
outage 0.1
cut a 10
pass 1.3
outage 3
crash c
cut e 10
pass 10
