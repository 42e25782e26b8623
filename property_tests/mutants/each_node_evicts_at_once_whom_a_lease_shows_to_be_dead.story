# each node evicts at once whom a lease shows to be dead
# O17: c#1 does the coordinator's chore (Evict(dead=frozenset({Node(slot='a', incarnation=1)}))), 0 s after it was due
world min=3 backend=lease node_failures=1 leaves=1
start a
pass 1
kill a 1
