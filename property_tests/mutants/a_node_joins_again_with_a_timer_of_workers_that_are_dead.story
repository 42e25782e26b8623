# a node joins again with a timer of workers that are dead
# G10: remembers (None, None, 3.006) and workers [] on its way into a world: STOPPING + Reaped(at=0.008) -> JOINING: (Join(alive=None),)
world nodes=1 max=1
start a
start a
