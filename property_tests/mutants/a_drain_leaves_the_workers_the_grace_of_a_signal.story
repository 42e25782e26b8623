# a drain leaves the workers the grace of a signal
# G6: gives its workers more than their grace: RUNNING + Over(round=0, why=<Why.FAILED: 'failed'>, by=Node(slot='a', incarnation=1), at=1.0039999999999996, generation=Generation(job='a@0', round=1)) -> LEAVING: (Leave(), Signal(signum=15, spared=None, children=None))
world nodes=2 max=2 grace=1 shutdown=2
start a
start b
pass 1
notice b 5
fail a
