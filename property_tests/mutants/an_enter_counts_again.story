# an enter counts again
# S19: b#1, c#1 are seated by proposals that count again
world nodes=3 max=3 min=3 helping=1
start a
start b
start c
