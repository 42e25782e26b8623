# another incarnation is no evidence
# L15: a link to b#1 is tried [] s after Answered(incarnation=2), and is to be in (0.02, 1.0) s
world nodes=4 min=2 max=2 links=1
start b
pass 1
cancel
pass 1
older 1
