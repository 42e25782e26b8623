# a node joins again with the success of a world that is over
# G10: remembers (None, 2.0, None) and workers [] on its way into a world: BARRIER + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='a', incarnation=1), at=7.008000503000002, generation=Generation(job='b@0', round=0)) -> JOINING: (Join(alive=None),)
world nodes=5 max=2
start b
pass 1
kill b 1
