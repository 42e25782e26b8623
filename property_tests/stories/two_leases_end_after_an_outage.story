# Found by L9, three nodes on leases (run 5344 of its seed): the coordinator and a spare died as the store went away. Their leases ended a TTL
# after it was back, and a newcomer could count the spare's silence only from then.
world max=1 backend=lease seed=1 interval=20 join=600 grace=1 links=1
start a
start c
pass 1
crash a
crash c
start b
outage 160
pass 600
