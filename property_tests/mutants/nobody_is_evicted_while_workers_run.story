# nobody is evicted while workers run
# L10: b#1 died 14.00 s ago: round 0 complete [b:in a:done]
world nodes=2 max=2
start b
pass 1
crash b
