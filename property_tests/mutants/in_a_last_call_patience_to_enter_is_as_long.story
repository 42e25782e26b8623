# in a last call patience to enter is as long
# O16: b#1 waits until 0.806 for what it has proposed, number 1 since 0.006
world helping=1
start a
start b
