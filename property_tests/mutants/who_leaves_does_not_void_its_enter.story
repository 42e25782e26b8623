# who leaves does not void its enter
# S15: b#1 is seated after it had left
world nodes=4 min=4 max=4 helping=1
start a
start b
start c
pass 0.3
drain b
pass 2
