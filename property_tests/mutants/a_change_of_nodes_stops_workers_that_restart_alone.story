# a change of nodes stops workers that restart alone
# G8: a change of nodes stops living workers: RUNNING + Over(round=0, why=<Why.LOST: 'lost'>, by=Node(slot='b', incarnation=1), at=6.010000503000001, generation=Generation(job='a@0', round=0)) -> STOPPING: (Signal(signum=15),)
world nodes=2 min=2 max=2 alone=1
start a
pause-heart a 10
