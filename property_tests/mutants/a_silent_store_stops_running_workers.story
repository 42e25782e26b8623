# a silent store stops running workers
# O2: b#1 stops its workers because the store is silent
world nodes=3 min=1 max=3 join=15 reserves=1
start a
start b
start c
pass 5
outage 40
pass 40
