# Found by L10 in calls over nodes (run 756 of its seed), and told here by L9: c's reads of heartbeats take longer than an interval, so it read one after
# the other, never told its waiter to wait again, and did not learn that it was in a new world, whose members waited for it.
world nodes=4 min=2 max=2 interval=1
start a
start b
start c
pass 50
slow c 0.6
pass 50
start d
pass 100
drain b
pass 400
