# patience with proposals is never over
# L10: b#1 died 14.00 s ago: round 0 complete [b:in a:in]
world nodes=2 max=2 helping=1
start b
pass 1
crash b
