# another life is taken for the same
# S7: c join: another life or other limits in one chain of versions: a@0, Limits(min_nodes=1, max_nodes=3, max_restarts=3)
world nodes=4 seed=3
start a
start b
start c
start d
pass 0.01
empty
