# patience to enter is never over
# O16: b#1 waits until 1.606 for what it has proposed, number 1 since 0.006
world min=3 helping=1
start c
find-unfit c 1
