# an older question in vain is the last one
# L19: a#1 is fed Missed, and remembers otherwise: tried_at: -inf, not 0.758000303
world nodes=2 max=2
start a
outage 1
pass 2
outage 1
