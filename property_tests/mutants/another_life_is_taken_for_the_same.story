# another life is taken for the same
# S7: a done: another life, job or limits in one chain of versions: Life(nonce='a@0/2', epoch=2), a@0, Limits(min_nodes=1, max_nodes=1, max_restarts=3)
world nodes=1 max=1
start a
pass 1
empty
