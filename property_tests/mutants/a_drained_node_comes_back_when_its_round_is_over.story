# a drained node comes back when its round is over
# G1: stops, and does not leave, though it is drained and its round is over: RUNNING + Over(round=0, why=<Why.FAILED: 'failed'>, by=Node(slot='b', incarnation=1), at=3.0059999999999993) -> STOPPING: (Signal(signum=15),)
world nodes=2 max=2
start a
start b
pass 3
fail b
notice a 20
