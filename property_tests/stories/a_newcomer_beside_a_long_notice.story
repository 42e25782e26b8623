# Found by L2, three nodes on leases (run 409 of its seed): nobody ends the round of a drained member for a newcomer, since it will end soon.
# Its notice was longer than the time for a join, so the newcomer, for which there was room, gave up though its job lived. It waits for
# the next round as a spare does.
world nodes=2 max=2
start a
start b
cut b 5
pass 5
notice a 400
