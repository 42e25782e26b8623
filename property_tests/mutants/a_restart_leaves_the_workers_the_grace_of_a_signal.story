# a restart leaves the workers the grace of a signal
# G6: gives its workers more than their grace: RUNNING + Closed(verdict=Verdict(ending=<Ending.SUCCEEDED: 'succeeded'>, round=0, by=Node(slot='a', incarnation=1), why=<Why.DONE: 'done'>), at=1.0019999999999998) -> STOPPING: (Signal(signum=15, spared=None, children=None),)
world nodes=2 min=2 max=2 grace=1 shutdown=2 reserves=2
