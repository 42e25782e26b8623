# a drained member without a world stays a part of the round
# V15: operator drain: drained and still taken for a part of a round, or leaving without notice: c#1
world nodes=4 max=1 seed=2 links=1
start a
start b
start c
start d
pass 1
refuse a 1
notice c 1
