# a goodbye is no goodbye
# L15: a link to a#1 tells [<Says.SUSPECT: 'suspect'>] of Ended(goodbye=True), not None
world nodes=2 min=2 max=2 seed=7 links=1
