# a drained node moves into the next world
# G2: joins though it is drained: BARRIER + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='b', incarnation=1), at=6.010000503000001, generation=Generation(job='a@0', round=0)) -> MOVING: (Join(alive=Generation(job='a@0', round=0)),)
world nodes=2 max=2 alone=2
start a
start b
pass 1
notice b 10
crash a
