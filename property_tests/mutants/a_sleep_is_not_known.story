# a sleep is not known
# L19: a#1 is fed Woke, and remembers otherwise: woke_at: None, not 10.0
world nodes=1 max=1
start a
pause a 10
