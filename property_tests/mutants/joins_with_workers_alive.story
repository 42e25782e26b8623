# joins with workers alive
# G1: not in the table: RUNNING + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='b', incarnation=2), at=8100.0105) -> JOINING: (Join(),)
world nodes=2 max=1 seed=2
start a
start b
start b
