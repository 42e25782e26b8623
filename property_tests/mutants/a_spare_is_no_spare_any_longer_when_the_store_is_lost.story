# a spare is no spare any longer when the store is lost
# L19: b#1 is fed Shown, and remembers otherwise: spare_at: None, not 30.003000000000004
world nodes=2 max=1 join=15
start a
start b
pass 30
empty
