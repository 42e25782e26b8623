# suspects' heartbeats are not read
# O18: b#1 reads the heartbeats of a#1, not of c#1, a#1
world max=1 links=1
start a
start b
start c
pass 1
pause-loop b 1
refuse c 1
