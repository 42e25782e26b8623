# patience with proposals is never over
# O16: a#1 waits until 3.606 for what it has proposed, number 1 since 2.002
world nodes=2 max=2 helping=1
start b
pass 1
crash b
