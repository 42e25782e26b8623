# an answer from before its sleep gives it a say
# L19: a#1 is fed Shown, and remembers otherwise: woke_at: None, not 10.0, held_at: 10.0, not None
world nodes=1 max=1
start a
pause a 10
