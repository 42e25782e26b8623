# a round that has its minimum lacks nobody
# O16: c#1 acts for all 0 s after it has proposed, as number 1
world nodes=4 min=2 max=4 unit=2 racks=2 seed=1 helping=1
