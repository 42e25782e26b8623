# workers live on into another generation
# G8: workers live on though a round has failed since they started: RUNNING + Over(round=0, why=<Why.FAILED: 'failed'>, by=Node(slot='b', incarnation=1), at=1.0080000029999998, generation=Generation(job='a@0', round=1)) -> MOVING: (Join(alive=Generation(job='a@0', round=0)),)
world nodes=2 max=2 alone=2
start a
start b
pass 1
fail b
fail b
fail b
