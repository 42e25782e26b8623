# a worker that raised has no timer on its way into the next world
# G6: looks at its workers later than they are to be signalled: RUNNING + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='a', incarnation=2), at=1.3019999999999998, generation=Generation(job='a@0', round=0)) -> MOVING: (Join(alive=Generation(job='a@0', round=0)),)
world nodes=2 max=2 unlike=3 alone=2 codes=1 echoes=1 standbys=0.3
start a
start b
pass 1
start a
fail b
