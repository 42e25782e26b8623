# the store was silent while its node slept
# L19: a#1 is fed Woke, and remembers otherwise: silent_since: 0.002, not None
world nodes=1 max=1 join=15
start a
outage 10
pass 10
pause a 7
