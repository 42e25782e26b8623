# a broken link is not tried at once
# L15: a link to b#1 is tried [1.0] s after Ended(goodbye=False), and is to be in (0.0, 0.0) s
world nodes=2 max=1 links=1
start a
start b
pass 1
unlink b
