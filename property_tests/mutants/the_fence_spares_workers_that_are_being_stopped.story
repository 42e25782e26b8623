# the fence spares workers that are being stopped
# G13: looks at its workers too late for the fence, or for what they started: RUNNING + Over(round=0, why=<Why.FENCED: 'fenced'>, by=Node(slot='a', incarnation=1), at=5.008000000000003, generation=Generation(job='b@2', round=0)) -> STOPPING: (Signal(signum=15, spared=None, children=None),)
world nodes=2 min=2 max=2 fence=3
start a
pause a 5
