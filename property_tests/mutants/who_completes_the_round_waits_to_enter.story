# who completes the round waits to enter
# O16: c#1 waits until 0.1185 for what it has proposed, number 2 since 0.006
world helping=1
start a
start b
start c
