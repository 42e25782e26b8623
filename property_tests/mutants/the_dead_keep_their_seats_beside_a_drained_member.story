# the dead keep their seats beside a drained member
# L10: c#1 died 55.00 s ago: round 0 complete [a:in b:in c:in d:in]
world nodes=4 min=1 max=4 seed=6
start a
start b
start c
start d
pass 5
hang b
notice b 60
pass 1
crash c
pass 60
