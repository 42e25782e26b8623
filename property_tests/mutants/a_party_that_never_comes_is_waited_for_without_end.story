# a party that never comes is waited for without end
# L9: no rest 25.00 s after start, at most 24.7 s: round 0 complete [a:in b:waiting]
world max=2 last_call=0 party=3
start a
start b
