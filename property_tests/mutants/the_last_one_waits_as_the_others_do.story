# the last one waits as the others do
# O16: b#1 waits until 1.006 for what it has proposed, number 2 since 1.002
world nodes=2 min=2 max=2 helping=1
