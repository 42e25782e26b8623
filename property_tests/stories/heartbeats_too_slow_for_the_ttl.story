# Found by L9, three nodes on leases (run 230 of its seed): with a TTL of 3 s a heartbeat that takes 1.2 s is too old to start workers by.
world nodes=1 max=1 attempts=3
start a
slow a 0.6
pass 54
