# a lost start is not remembered
# B8: [] are remembered as lost after Evict(dead=frozenset({Node(slot='a', incarnation=1)})) of b#1
world nodes=2 min=2 max=2
start a
pause-heart a 10
