# only the last world is remembered as run
# L19: a#1 is fed Shown, and remembers otherwise: ran: frozenset({WorldId(life=Life(nonce='a@0/2', epoch=1), round=0)}), not {WorldId(life=Life(nonce='a@0', epoch=1), round=0), WorldId(life=Life(nonce='a@0/2', epoch=1), round=0)}
world nodes=1 max=1
start a
pass 1
pause a 7
pass 5
empty
pass 5
older 5
