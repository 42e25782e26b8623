# a refusal of a link that was never up is evidence
# L15: a link to b#1 tells [<Says.GONE: 'gone'>] of Refused(), not None
world nodes=2 max=1 links=1 standbys=3
start a
start b
pass 2.5
refuse b 1
pass 1
