# everybody watches the coordinator only
# L10: b#1 died 14.00 s ago: round 0 complete [a:done b:in]
world nodes=2 max=2
start a
start b
pass 1
crash b
