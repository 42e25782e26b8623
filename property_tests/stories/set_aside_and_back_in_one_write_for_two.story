# Found by L4, run 1,704 of seed 0xb0d9: the judge did not count a node as a newcomer that had been set aside, and came back by a write for two.
world upscale=0 helping=1 node_failures=1
start a
pass 2
start b
pass 1
fail a
start c
pass 1
fail c
pass 10
