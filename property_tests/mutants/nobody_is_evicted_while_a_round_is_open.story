# nobody is evicted while a round is open
# L10: b#1 died 14.00 s ago: round 0 complete [b:in a:waiting]
world max=1
start b
pass 1
crash b
