# Found by a search for a mutant, run 3,423 (L9): the law did not know that a start which has seen no register yet watches a later start of its
# slot before it gives way.
world nodes=1 max=1 seed=2 interval=20
start a
start-stranger a
