# workers that did not raise are killed with one that did
# G6: kills workers that have time left: RUNNING + Elapsed(at=51703.350000003) -> RUNNING: (Signal(signum=9, spared=None, children=None),)
world workers=2 seed=3 grace=1 alone=2 echoes=1
start a
start b
start c
pass 1
crash a
pass 5
