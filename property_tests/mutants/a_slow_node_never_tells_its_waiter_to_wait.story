# a slow node never tells its waiter to wait
# L9: no rest 400.00 s after drain, slow, at most 50.3 s: round 1 complete [a:in c:in d:waiting]
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
