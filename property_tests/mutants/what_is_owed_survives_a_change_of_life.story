# what is owed survives a change of life
# L19: c#1 is fed Shown, and remembers otherwise: owed: Token(life=Life(nonce='a@0', epoch=1), version=10), not None
world seed=1 last_call=0.5
start a
start b
pass 1
start c
pass 5
start b
pass 1
late-write c 2
drain c
older 10
start b
