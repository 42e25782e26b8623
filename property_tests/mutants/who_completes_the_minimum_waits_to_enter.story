# who completes the minimum waits to enter
# O16: b#1 waits until 0.806 for what it has proposed, number 1 since 0.006
world min=2 helping=1
