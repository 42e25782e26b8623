# heartbeats beside another life make nobody look
# L19: a#1 is fed Heartbeats, and remembers otherwise: unsure_at: None, not 1.0080000029999998
world nodes=2 max=1
start a
start b
pass 1
cut-in a 1
older 1
