# what an answer shows was so when it came
# L19: a#1 is fed Shown, and remembers otherwise: woke_at: None, not 5.0, held_at: 5.0, not None
world nodes=1 max=1 attempts=3
start a
pause a 5
