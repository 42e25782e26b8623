# a node without workers stays when the wait for a cause is over
# L10: b#1 died 15.00 s ago: round 1 open [a:expected b:expected]
world nodes=2 max=2 workers=2 seed=1 last_call=0.5 echoes=1
start a
start b
pass 3
crash b
pass 9
