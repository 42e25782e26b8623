# another incarnation at a port that was never up is evidence
# L15: a link to b#1 tells [<Says.GONE: 'gone'>] of Answered(incarnation=2), not None
world nodes=4 min=2 max=2 links=1
start b
pass 1
cancel
pass 1
older 1
