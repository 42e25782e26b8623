# an echo counts against its node
# G4: does not know if the cause is open: STOPPING + Elapsed(at=1.500500003) -> JOINING: (End(why=<Why.FAILED: 'failed'>, is_open=None), Join(alive=None))
world max=2 echoes=1
start b
start c
pass 1
start a
crash b
