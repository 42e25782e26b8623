# an echo ends no round
# L9: no rest 29.00 s after crash, start, at most 28.5 s: round 0 complete [a:in c:in d:absent b:waiting]
world nodes=4 min=3 reserves=1 echoes=1
start a
start d
start c
pass 1
crash d
