# no end of grace
# G6: stops without end: RUNNING + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='b', incarnation=2), at=8100.0105) -> STOPPING: (Signal(signum=15),)
world nodes=2 max=1 seed=2
start a
start b
start b
