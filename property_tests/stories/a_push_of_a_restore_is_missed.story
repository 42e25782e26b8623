# Found by R12, two nodes (run 1178 of its seed): a node that runs alone restored its world, and its waiter missed the push of that. The store then
# lost it again, and showed what the waiter had waited on, so the simulated waiter told nothing. A real one loses its connection, and says so.
world nodes=1 max=1 seed=1
start a
pass 1
older 1
gap a
pass 1
older 2
