# no world is remembered as run
# L19: a#1 is fed Shown, and remembers otherwise: ran: frozenset(), not {WorldId(life=Life(nonce='a@0', epoch=1), round=0)}
world nodes=1 max=1 fence=3
start a
pass 1
cut-in a 1
pass 5
