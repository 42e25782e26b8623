# one refusal is evidence
# L15: a link to b#1 tells [<Says.GONE: 'gone'>] of Refused(), not None
world nodes=2 max=2 links=1
start a
start b
pass 1
crash b
